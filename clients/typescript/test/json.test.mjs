import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, stringify } from "../dist/json.js";
import { outputOf } from "../dist/worker/outputs.js";

const LARGE = "3544790567247868102";

test("integers of 64 bits are read as they were written", () => {
  for (const [json, expected] of [
    [`{"a": ${LARGE}}`, { a: 3544790567247868102n }],
    [`[-9223372036854775808, 18446744073709551615]`, [-9223372036854775808n, 18446744073709551615n]],
    ["[9007199254740991, -9007199254740991]", [9007199254740991, -9007199254740991]],
    ["[9007199254740992, 9007199254740993]", [9007199254740992n, 9007199254740993n]],
    [`["${LARGE}", "\\"${LARGE}"]`, [LARGE, `"${LARGE}`]],
    [`{"${LARGE}": 1}`, { [LARGE]: 1 }],
    ["[0.1234567890123456789, 1234567890123456789.5, 1e30]", [0.1234567890123456789, 1234567890123456789.5, 1e30]],
    [`[[{"x": {"y": [${LARGE}]}}]]`, [[{ x: { y: [3544790567247868102n] } }]]],
  ]) {
    assert.deepEqual(parse(json), expected, json);
  }
  assert.throws(() => parse(`{"a": ${LARGE}`), SyntaxError);
});

test("what is read is written again with the same digits", () => {
  const json = `{"a":${LARGE},"b":[-${LARGE},"${LARGE}",1.5,null]}`;
  assert.equal(stringify(parse(json)), json);
  assert.deepEqual(outputOf(parse(json)), { json });
  assert.equal(outputOf({ n: 5n }).json, '{"n":5}');
  assert.throws(() => stringify({ n: 2n ** 64n }), /`n` is 18446744073709551616n, expected an integer of 64 bits/);
  assert.match(outputOf({ n: -(2n ** 63n) - 1n }).fault, /64 bits/);
});

test("values whose contents JSON cannot hold are refused", () => {
  class Hidden {
    #x = 1;
    get x() {
      return this.#x;
    }
  }
  for (const [value, type] of [
    [new Map([["a", 1]]), "Map"],
    [new Set([1]), "Set"],
    [new Map(), "Map"],
    [Promise.resolve(1), "Promise"],
    [/x/, "RegExp"],
    [new Error("x"), "Error"],
    [new Uint8Array([1]), "Uint8Array"],
    [new ArrayBuffer(1), "ArrayBuffer"],
    [new Hidden(), "Hidden"],
  ]) {
    assert.match(outputOf({ deep: [{ value }] }).fault, new RegExp(`\`value\` is a value of type \`${type}\``), type);
    assert.match(outputOf({ n: 1n, value }).fault, new RegExp(`type \`${type}\``), type);
    assert.ok(outputOf(value).fault, type);
  }
  class Point {
    x = 1;
  }
  for (const [value, json] of [
    [{ a: {} }, '{"a":{}}'],
    [Object.create(null), "{}"],
    [{ at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    [{ p: new Point(), e: {} }, '{"p":{"x":1},"e":{}}'],
    [{ b: Buffer.from("a").toJSON() }, '{"b":{"type":"Buffer","data":[97]}}'],
  ]) {
    assert.deepEqual(outputOf(value), { json });
  }
});
