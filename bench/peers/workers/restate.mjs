// A Restate service whose handlers do nothing, or call one that does: node restate.mjs PORT
import * as restate from "@restatedev/restate-sdk";

// The SDK uses it, and Node.js has it from 22 on.
Promise.withResolvers ??= function () {
  const made = {};
  made.promise = new this((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};

const output = {};
const noop = restate.service({
  name: "noop",
  handlers: {
    one: async () => output,
    chain: async (ctx, length) => {
      let last;
      for (let k = 0; k < length; k++) last = await ctx.serviceClient(noop).one({ k });
      return last;
    },
    fan: async (ctx, width) => {
      await restate.RestatePromise.all(Array.from({ length: width }, (_, k) => ctx.serviceClient(noop).one({ k })));
      return ctx.serviceClient(noop).one({ k: width });
    },
  },
});
await restate.serve({ services: [noop], port: Number(process.argv[2]) });
