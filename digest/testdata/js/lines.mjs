// Answers the lines of IMPLEMENTING.md that a reader can answer: node lines.mjs
import { createInterface } from "node:readline";
import { Refused, apply, bare, decode, keyOf, open, positions, read } from "./format.mjs";

const KINDS = ["", "filter", "delta", "pieces"];
const hex = (s) => Uint8Array.from(Buffer.from(s === "-" ? "" : s, "hex"));
const list = (set) => set.join(",") || "-";
const whole = (h) => [KINDS[h.kind], h.scheme, h.hashes, h.profile, h.tag, h.bits, h.epoch, h.sequence, h.state, h.keys, h.span ?? 0,
  list(h.set)].join(" ");

const answers = {
  key: (seed, b) => keyOf(BigInt(seed), hex(b)),
  positions: (bits, hashes, key) => list(positions({ bits: +bits, hashes: +hashes }, BigInt(key))),
  read: (b) => whole(read(hex(b))),
  apply: (b, base) => whole({ ...apply(hex(b), read(hex(base))), span: 0 }),
  bare: (b, base) => list(bare(hex(b), read(hex(base)))),
  decode: (which, m, x, b) => list(decode(+which, hex(b), +m, +x)),
  async ask(b, position) {
    const all = hex(b);
    return +await open(all.subarray(0, 512)).find(+position, (at, n) => all.subarray(at, at + n));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [what, ...args] = line.split(" ");
  try {
    console.log(String(await answers[what](...args)));
  } catch (e) {
    console.log(e instanceof Refused ? `refused ${e.error} ${e.offset} ${e.field}` : `refused ${e} 0 code`);
  }
}
