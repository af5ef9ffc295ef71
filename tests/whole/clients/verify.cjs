// Checks signatures with the npm package `standardwebhooks`: reads one JSON object
// `{secret, headers, body}` a line, answers `true` or `false` a line.
"use strict";
const { Webhook, WebhookVerificationError } = require("standardwebhooks");

const lines = require("fs").readFileSync(0, "utf8").split("\n").filter((line) => line !== "");
for (const line of lines) {
  const { secret, headers, body } = JSON.parse(line);
  let verified = true;
  try {
    new Webhook(secret).verify(body, headers);
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    verified = false;
  }
  console.log(verified);
}
