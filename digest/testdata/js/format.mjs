// A reader of the digest format in JavaScript, from FORMAT.md and CODERS.md alone, for browsers, edge functions and
// node: no dependency, and less than 10 kB when minified. Comments name sections: "F 4" is FORMAT.md's, "C 2.1" CODERS.md's.
//
//   const f = read(bytes)                      // a filter, whole or in pieces
//   const g = apply(deltaBytes, f)             // what it has become
//   has(g, keyOf(seed, utf8("GET http://a/")))
//   await ask(head, (at, n) => bytes, key)     // looks a key up in a filter in pieces that is somewhere else
//
// Keys, states and seeds are BigInts, positions are Numbers. Whatever is wrong throws a Refused.

const { min, max, floor, ceil } = Math, big = BigInt;
const TWO32 = 2n ** 32n, TWO63 = 2n ** 63n, TWO64 = 2n ** 64n, M = TWO64 - 1n, GAMMA = 0x9e3779b97f4a7c15n, MAX_BITS = 2 ** 44, MAX_BYTES = 2 ** 26, MAX_ONES = 2 ** 25;

export class Refused extends Error {
  constructor(...what) {
    super(what);
    [this.error, this.field, this.offset] = what;
  }
}
const bad = (short) => { throw short ? "truncated" : "corrupt"; }; // what a coder refuses
const refuse = (field, offset, error = "corrupt") => { throw new Refused(error, field, offset); };

// ---- Hashes: F 2

export function keyOf(seed, b) { // XXH64
  const v = new DataView(b.buffer, b.byteOffset, b.length), n = b.length;
  const [p1, p2, p3, p4, p5] = [0x9E3779B185EBCA87n, 0xC2B2AE3D27D4EB4Fn, 0x165667B19E3779F9n, 0x85EBCA77C2B2AE63n, 0x27D4EB2F165667C5n];
  const rotl = (x, by) => (x << by | x >> 64n - by) & M, step = (a, w) => rotl(a + w * p2 & M, 31n) * p1 & M;
  let h = seed + p5 & M, at = 0;
  if (n >= 32) {
    const lane = [seed + p1 + p2 & M, seed + p2 & M, seed, seed - p1 & M];
    for (; at + 32 <= n; at += 32) for (let i = 0; i < 4; i++) lane[i] = step(lane[i], v.getBigUint64(at + 8 * i, true));
    h = rotl(lane[0], 1n) + rotl(lane[1], 7n) + rotl(lane[2], 12n) + rotl(lane[3], 18n) & M;
    for (const l of lane) h = (h ^ step(0n, l)) * p1 + p4 & M;
  }
  h = h + big(n) & M;
  for (; at + 8 <= n; at += 8) h = rotl(h ^ step(0n, v.getBigUint64(at, true)), 27n) * p1 + p4 & M;
  if (at + 4 <= n) h = rotl(h ^ big(v.getUint32(at, true)) * p1 & M, 23n) * p2 + p3 & M, at += 4;
  for (; at < n; at++) h = rotl(h ^ big(b[at]) * p5 & M, 11n) * p1 & M;
  h = (h ^ h >> 33n) * p2 & M;
  h = (h ^ h >> 29n) * p3 & M;
  return h ^ h >> 32n;
}

function mix(x) {
  x &= M;
  x = (x ^ x >> 30n) * 0xbf58476d1ce4e5b9n & M;
  x = (x ^ x >> 27n) * 0x94d049bb133111ebn & M;
  return x ^ x >> 31n;
}

export const keyOfNumber = (seed, number) => mix(mix(number + GAMMA) ^ mix(seed));

export function positions({ hashes, bits }, key) { // F 2
  const d = mix(key + GAMMA) | 1n, all = new Set();
  for (let i = 0; i < hashes; i++, key += d) all.add(Number((key & M) * big(bits) >> 64n));
  return [...all];
}

function stateOf(h, set) { // F 3
  let s = mix(big(h.bits) + mix(big(h.hashes + 256 + 65536 * h.tag) + (big(h.profile) << 48n)));
  for (const p of set) s += mix(big(p) + GAMMA);
  return s & M;
}

// ---- The adaptive method: C 2

function interval(b) {
  let next = 0, code = 0n, ahead = 0n, width = M;
  const shift = () => {
    let w = 0;
    for (let i = 0; i < 4; i++) w = w * 256 + (b[next++] ?? 0);
    code = (code << 32n | big(w)) & M;
    ahead = (ahead << 32n | big(w)) & M;
    if (next - 8 > b.length) bad(true);
  };
  const narrow = (from, w) => {
    ahead -= from, width = w;
    if (w < TWO32) width <<= 32n, shift();
  };
  const bit = (zero) => {
    const split = width * zero >> 64n;
    if (ahead < split) return narrow(0n, split), 0;
    return narrow(split, width - split), 1;
  };
  const uniform = (n) => {
    for (let found = 0; ; n -= 16) {
      const some = min(n, 16), w = width >> big(some), u = ahead / w;
      if (u >> big(some)) bad();
      narrow(u * w, w);
      found = found * 2 ** some + Number(u);
      if (n <= 16) return found;
    }
  };
  const bits = (m, x) => { // C 2.3
    const found = [];
    for (let p = 0, ones = x, z = 0n; p < m; p++) {
      const left = m - p;
      if (p % 64 < 1) {
        if (!ones) break;
        if (ones === left) { for (; p < m; p++) found.push(p); break; }
        z = (big(left - ones) << 64n) / big(left);
        if (z < TWO32) z = TWO32;
      }
      const one = bit(z);
      if (one ? !ones : ones === left) bad();
      if (one) found.push(p), ones--;
    }
    return found;
  };
  const gaps = (m, y) => { // C 2.4
    const r = [(big(m - y) << 64n) / big(m)], found = [];
    while (r.at(-1) >= 1n << 62n) r.push(r.at(-1) ** 2n >> 64n);
    const top = r.length - 1, low = r.slice(0, top).filter((v) => v > (TWO64) - (1n << 59n)).length;
    const zero = r.map((v) => (1n << 127n) / ((TWO63) + (v >> 1n))), none = (TWO64) - r[top];
    for (let at = 0; found.length < y; at++) {
      while (bit(none)) if ((at += 2 ** top) >= m) bad();
      for (let j = top - 1; j >= low; j--) if (bit(zero[j])) at += 2 ** j;
      at += uniform(low);
      if (at >= m) bad();
      found.push(at);
    }
    return found;
  };
  shift(), shift();
  if (ahead >= M) bad();
  return {
    set(m, x) {
      const y = rare(b, m, x);
      if (!y) return others(x, []);
      if (8 * y >= m) return bits(m, x);
      return most(m, x, gaps(m, y));
    },
    end() {
      const low = code - ahead & M;
      for (let n = 0; ; n++) {
        const unit = 1n << big(64 - 8 * n), up = (low + unit - 1n) / unit * unit - low, over = next - 8 + n - b.length;
        if (up >= width) continue;
        if (over || up !== ahead) bad(over > 0);
        return;
      }
    },
  };
}

function others(m, set) {
  const out = [];
  for (let p = 0, i = 0; p < m; p++) if (set[i] === p) i++; else out.push(p);
  return out;
}

// ---- The block method: C 3

const len = (v) => floor(v).toString(2).length;
const choose = (c) => { let v = 1; for (let i = 1; i <= c; i++) v = v * (16 - c + i) / i; return v; };
const ones = (v) => { let n = 0; for (; v; v &= v - 1) n++; return n; };
const groups = []; // by number of ones, the blocks of 16 bits in order
for (let v = 0; v < 65536; v++) (groups[ones(v)] ??= []).push(v);
const byRank = groups.flat();

function model(m, y) {
  const blocks = 18 * y >= m, log = blocks ? 12 : 11, symbols = [];
  let r = (big(m - y) << 64n) / big(m);
  const add = (base, raw, weight) => symbols.push({ base, raw, weight });
  if (blocks) { // C 3.4
    for (let n = 0; n < 4; n++) r = r * r >> 64n;
    const o = 2 * y === m ? M : (big(y) << 64n) / big(m - y);
    let q = r, rank = 0, left = TWO64;
    for (let c = 0; c <= 16; c++, q = q * o >> 64n) {
      const count = choose(c);
      for (let j = len(count) - 1; j >= 0; j--) {
        if (floor(count / 2 ** j) % 2 < 1) continue;
        const weight = q << big(j);
        if (weight >= 1n << 49n) add(rank, j, weight), left -= weight;
        rank += 2 ** j;
      }
    }
    add(0, 16, left);
  } else { // C 3.5
    let raw = 0, left = M, base = 0;
    for (; r * r >> 64n >= 7n << 61n; raw++) r = r * r >> 64n;
    for (; left >= 1n << 57n; base += 2 ** raw) {
      const rest = left * r >> 64n;
      add(base, raw, left - rest);
      left = rest;
    }
    add(base, 0, left);
  }
  const L = 2 ** log; // C 3.2
  let sum = 0;
  for (const s of symbols) sum += s.f = max(1, Number((s.weight >> big(63 - log)) + 1n >> 1n));
  for (const up = sum < L; sum !== L; sum += up ? 1 : -1) {
    let best, by;
    for (const s of symbols) {
      if (!up && s.f < 2) continue;
      const v = s.weight / big(2 * s.f + (up ? 1 : -1));
      if (!best || (up ? v > by : v < by)) best = s, by = v;
    }
    best.f += up ? 1 : -1;
  }
  const owner = [];
  for (let i = 0, at = 0; i < symbols.length; i++) for (let j = 0; j < symbols[i].f; j++, at = (at + 5 * L / 8 + 3) % L) owner[at] = i;
  const states = owner.map((i) => { // what to do in a state
    const t = symbols[i].f + (symbols[i].seen = (symbols[i].seen ?? -1) + 1), n = log + 1 - len(t);
    return { i, n, next: t * 2 ** n - L };
  });
  return { blocks, log, symbols, states };
}

function block(b, m, x) { // C 3.3
  const y = rare(b, m, x), out = [];
  if (!y) return others(x, []);
  const { blocks, log, symbols, states } = model(m, y), escape = symbols.length - 1;
  let at = 0;
  const take = (n) => {
    if (at + n > 8 * b.length) bad(true);
    let v = 0;
    for (let got = 0; got < n;) {
      const some = min(n - got, 8 - at % 8);
      v += (b[at >> 3] >> at % 8 & (1 << some) - 1) * 2 ** got;
      got += some, at += some;
    }
    return v;
  };
  if (!b[0]) bad();
  while (!take(1));
  const state = [take(log), take(log)];
  const end = ceil(m / 64) * 64;
  for (let p = 0, turn = 0; blocks ? p < end : out.length < y; turn ^= 1) {
    const { i, n, next } = states[state[turn]], value = symbols[i].base + take(symbols[i].raw);
    state[turn] = next + take(n);
    if (blocks) {
      if (i === escape && symbols.some((s, j) => j < escape && value >= s.base && value < s.base + 2 ** s.raw)) bad();
      for (let j = 0; j < 16; j++) {
        if (!(byRank[value] >> j & 1)) continue;
        if (p + j >= m || out.push(p + j) > y) bad();
      }
      p += 16;
    } else {
      p += value;
      if (i === escape ? p > m : p >= m) bad();
      if (i < escape) out.push(p++);
    }
  }
  if (out.length !== y || at !== 8 * b.length || state[0] || state[1]) bad();
  return most(m, x, out);
}

function number(b, at) { // an unsigned varint: its value, and where it ends
  let v = 0n;
  for (let n = 0; n < 10; n++) {
    if (at >= b.length) bad(true);
    const byte = b[at++];
    v |= big(byte & 127) << big(7 * n);
    if (byte > 127) continue;
    if (n && !byte) break;
    return [v, at];
  }
  bad();
}

const most = (m, x, members) => x > m - x ? others(m, members) : members;

function rare(b, m, x) { // C 1
  const y = min(x, m - x);
  if (y > 8 * (b.length + 8)) bad(true);
  return y;
}

function method(m, x) { // C 1
  const y = min(x, m - x);
  return y && y * (len(m / y) + 1) >= 8192 ? 1 : 0;
}

export function decode(which, b, m, x) {
  if (m > MAX_BITS || x > m) bad();
  if (!rare(b, m, x) && b.length) bad();
  if (which) return block(b, m, x);
  const v = interval(b), set = v.set(m, x);
  v.end();
  return set;
}

function pair(b, m, x, n, y) { // C 4
  const one = method(m, x), two = method(n, y);
  if (one || two) {
    const [v, at] = number(b, 0), length = Number(v);
    if (length > b.length - at) bad(true);
    return [decode(one, b.subarray(at, at + length), m, x), decode(two, b.subarray(at + length), n, y)];
  }
  const v = interval(b), sets = [v.set(m, x), v.set(n, y)];
  v.end();
  return sets;
}

// ---- Messages: F 4 and 5

const check = (b, seed = 0n) => Number(keyOf(seed & M, b) & 0xffffffffn);

function reader(b, start = 0) { // b begins at byte start of the message
  const fail = (field, at) => refuse(field, start + at);
  const r = {
    b, at: 0,
    take(field, n) {
      if (n > r.b.length - r.at) fail(field, r.at);
      r.at += n;
      return r.b.subarray(r.at - n, r.at);
    },
    big: (field, n) => r.take(field, n).reduceRight((v, byte) => v << 8n | big(byte), 0n),
    fixed: (field, n = 1) => Number(r.big(field, n)),
    varint(field, low = 0n, most = TWO63, beyond) {
      let v, end;
      try { [v, end] = number(r.b, r.at); } catch { fail(field, r.at); }
      if (v < low || v > TWO63) fail(field, r.at);
      if (v > most) refuse(field, start + r.at, beyond);
      r.at = end;
      return v;
    },
    small: (field, low, most, beyond) => Number(r.varint(field, big(low), big(most), beyond)),
    code(field, n, decoder) {
      const at = r.at, code = r.take(field, n);
      try { return decoder(code); } catch (e) { if (!e.error) fail(field, at); throw e; }
    },
    section(field, m, x) {
      const at = r.at, n = Number(r.varint(field + " length"));
      if (n > r.b.length - r.at) fail(field + " length", at);
      return r.code(field, n, (code) => decode(method(m, x), code, m, x));
    },
    rest: () => r.b.length - r.at,
  };
  return r;
}

function header(r, ...due) {
  if (String.fromCharCode(...r.take("magic", 3)) !== "SCD") refuse("magic", 0);
  if (r.fixed("format version") !== 1) refuse("format version", 3, "version");
  if (due.length < 3) { // of a whole message
    const end = r.b.length - 4;
    if (end < 4) refuse("checksum", r.b.length);
    if (reader(r.b.subarray(end)).fixed("", 4) !== check(r.b.subarray(0, end))) refuse("checksum", end);
    r.b = r.b.subarray(0, end);
  }
  const h = { kind: r.fixed("kind") };
  if (h.kind > 3) refuse("kind", 4, "version");
  if (!due.includes(h.kind)) refuse("kind", 4);
  r.take("extension", r.fixed("extension length"));
  if (h.kind !== 2) geometry(r, h);
  h.epoch = r.varint("epoch", 1n);
  h.sequence = r.varint("sequence");
  h.stateAt = r.at;
  h.state = r.big("state", 8);
  h.keys = r.varint("keys");
  h.countAt = r.at;
  if (h.kind === 2) return h;
  h.count = r.small("count", 0, h.bits);
  if (h.count > MAX_ONES) refuse("count", h.countAt, "too large"); // F 6
  return h;
}

function geometry(r, h) {
  const at = r.at;
  h.scheme = r.fixed("scheme");
  if (h.scheme !== 1) refuse("scheme", at, h.scheme ? "version" : "corrupt");
  h.hashes = r.fixed("hashes");
  if (!h.hashes || h.hashes > 32) refuse("hashes", at + 1);
  h.profile = r.fixed("profile");
  h.tag = r.fixed("seed tag", 4);
  h.bits = r.small("bits", 1, MAX_BITS, "too large");
}

function pieceHead(r, h) {
  const span = r.small("span", 1, h.bits), at = r.at, length = r.small("piece length", 0, MAX_BYTES, "too large");
  if (length < 6) refuse("piece length", at);
  const want = check(r.b.subarray(0, r.at));
  if (r.fixed("head checksum", 4) !== want) refuse("head checksum", r.at - 4);
  return { span, length, first: r.at };
}

function piece(h, { span }, i, b, offset, most) {
  const r = reader(b, offset), size = min(span, h.bits - i * span);
  if (r.fixed("piece", 4) !== check(b.subarray(4), h.state + big(i))) refuse("piece", offset);
  const set = r.section("piece code", size, r.small("piece count", 0, min(size, most)));
  for (let at = r.at; at < b.length; at++) if (b[at]) refuse("padding", offset + at);
  return set.map((p) => p + i * span);
}

function pieces(r, h) {
  const head = pieceHead(r, h), out = [];
  h.span = head.span;
  for (let i = 0; i < ceil(h.bits / head.span); i++) {
    const at = r.at;
    for (const p of piece(h, head, i, r.take("piece", head.length), at, h.count - out.length)) out.push(p);
  }
  if (out.length !== h.count) refuse("count", h.countAt);
  return out;
}

function checkState(h, set) {
  if (set.length !== h.count || stateOf(h, set) !== h.state) refuse("state", h.stateAt);
}

// read returns a filter: its header, and its positions, ascending, in set.
export function read(b) {
  const r = reader(b), h = header(r, 1, 3);
  h.set = h.kind === 3 ? pieces(r, h)
    : r.code("positions", r.rest(), (code) => decode(method(h.bits, h.count), code, h.bits, h.count));
  checkState(h, h.set);
  if (r.rest()) refuse("end", r.at);
  return h;
}

// apply returns the filter to which a delta leads from base.
export function apply(b, base) {
  const r = reader(b), h = header(r, 2), at = r.at, step = r.varint("sequence step", 0n, h.sequence), from = r.big("base state", 8);
  if (h.epoch !== base.epoch || h.sequence - step !== base.sequence || from !== base.state) refuse("base", at, "base");
  const set = changes(r, base), f = { ...base, ...h, set, count: set.length };
  const same = set.length === base.set.length && set.every((p, i) => p === base.set[i]);
  if (!step && !same || same && h.state !== base.state) refuse("sequence step", at);
  checkState(f, set);
  return f;
}

// bare returns the positions to which a bare delta leads from base.
export const bare = (b, base) => changes(reader(b), base);

function changes(r, { set, bits }) {
  const at = r.at, counts = r.fixed("counts"), zeros = bits - set.length;
  let a = counts & 15, b = counts >> 4;
  if (a === 15) a += r.small("positions set", 0, MAX_BITS);
  if (b === 15) b += r.small("positions cleared", 0, MAX_BITS);
  if (a > zeros || b > set.length) refuse("counts", at);
  const [sets, clears] = r.code("changes", r.rest(), (code) => pair(code, zeros, a, set.length, b));
  const out = [];
  let i = 0, c = 0;
  const keep = () => { if (clears[c] === i) c++; else out.push(set[i]); i++; };
  for (const rank of sets) {
    while (i < set.length && set[i] <= rank + i) keep(); // the i positions before make it the rank
    out.push(rank + i);
  }
  while (i < set.length) keep();
  return out;
}

function contains(set, p) {
  let low = 0, top = set.length;
  while (low < top) {
    const mid = low + top >> 1;
    if (set[mid] < p) low = mid + 1; else top = mid;
  }
  return set[low] === p;
}

export const has = (filter, key) => positions(filter, key).every((p) => contains(filter.set, p));

// ask looks a key up in a filter in pieces. head has its first 512 bytes, which a manifest may have; fetch(at, n) gives, or
// promises, n bytes of it from byte at on: one piece for each position.
export async function ask(head, fetch, key) {
  const { h, find } = open(head);
  for (const p of positions(h, key)) if (!await find(p, fetch)) return false;
  return true;
}

export function open(head) {
  const r = reader(head), h = header(r, 1, 2, 3);
  if (h.kind !== 3) refuse("kind", 4);
  const d = pieceHead(r, h);
  return {
    h, find: async (p, fetch) => {
      const i = floor(p / d.span), at = d.first + i * d.length, b = await fetch(at, d.length);
      if (b.length < d.length) refuse("piece", at);
      return contains(piece(h, d, i, b, at, h.count), p);
    }
  };
}
