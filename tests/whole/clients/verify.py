"""Checks signatures with the package `standardwebhooks`: reads one JSON object
`{secret, headers, body}` a line, answers `true` or `false` a line."""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

for line in sys.stdin.buffer:
    asked = json.loads(line)
    try:
        Webhook(asked["secret"]).verify(asked["body"], asked["headers"])
        verified = True
    except WebhookVerificationError:
        verified = False
    print(json.dumps(verified))
