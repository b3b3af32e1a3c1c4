"""A second reader and writer of the digest format, written from FORMAT.md and CODERS.md.

    python3 format.py

answers each line on standard input by one line; ../../IMPLEMENTING.md says which. Comments name sections.
"""
import hashlib
import sys

from block import block, write_block

M64 = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15
MAX_MEMORY = 256 << 20
MAX_BYTES = 64 << 20

class Refused(Exception):
    """Error, field and offset of a message: FORMAT.md, section 1."""

def xxh64(data, seed):  # FORMAT.md, section 2
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
    rotl = lambda x, n: (x << n | x >> 64 - n) & M64
    step = lambda acc, word: rotl(acc + word * p2 & M64, 31) * p1 & M64
    word = lambda i, n: int.from_bytes(data[i:i + n], "little")
    at = 0
    if len(data) >= 32:
        lanes = [seed + p1 + p2 & M64, seed + p2 & M64, seed, seed - p1 & M64]
        while at + 32 <= len(data):
            lanes = [step(lane, word(at + 8 * i, 8)) for i, lane in enumerate(lanes)]
            at += 32
        h = sum(rotl(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & M64
        for lane in lanes:
            h = ((h ^ step(0, lane)) * p1 + p4) & M64
    else:
        h = seed + p5 & M64
    h = h + len(data) & M64
    while at + 8 <= len(data):
        h = (rotl(h ^ step(0, word(at, 8)), 27) * p1 + p4) & M64
        at += 8
    if at + 4 <= len(data):
        h = (rotl(h ^ word(at, 4) * p1 & M64, 23) * p2 + p3) & M64
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ byte * p5 & M64, 11) * p1 & M64
    h = (h ^ h >> 33) * p2 & M64
    h = (h ^ h >> 29) * p3 & M64
    return h ^ h >> 32

def seed_of(secret):
    if not secret:
        return 0
    return int.from_bytes(hashlib.sha256(b"summarycache seed 1" + secret).digest()[:8], "little") or 1

def tag_of(seed):
    if seed == 0:
        return 0
    data = b"summarycache seed tag 1" + seed.to_bytes(8, "little")
    return int.from_bytes(hashlib.sha256(data).digest()[:4], "little") or 1

def mix(x):
    x &= M64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31

def positions(m, k, h):  # section 2
    d = mix(h + GAMMA) | 1
    return list(dict.fromkeys(((h + i * d) & M64) * m >> 64 for i in range(k)))  # one that comes twice counts once

def state_of(h, members):  # section 3
    return (mix(h["bits"] + mix(h["hashes"] + (1 << 8) + (h["tag"] << 16) + (h["profile"] << 48))) + sum(mix(p + GAMMA) for p in members)) & M64

class Interval:
    """low, width and words of CODERS.md, section 2.1; reads a code, or writes one if there is none."""

    def __init__(self, code=None):
        self.code, self.low, self.width = code, 0, M64  # of low, the lowest 64 bits
        self.out = bytearray()  # and those above: 4 bytes for each of the words
        if code is not None:
            self.target = int.from_bytes(code[:8].ljust(8, b"\0"), "big")  # the code less low
            if self.target >= M64:
                raise ValueError("corrupt")

    def carry(self):
        at = len(self.out) - 1
        while self.out[at] == 0xFF:
            self.out[at] = 0
            at -= 1
        self.out[at] += 1

    def narrow(self, start, width):
        self.low, self.width = self.low + start, width
        if self.low > M64:
            self.low &= M64
            self.carry()
        if self.code is not None:
            self.target -= start
        while self.width < 1 << 32:
            self.out += (self.low >> 32).to_bytes(4, "big")
            self.low, self.width = self.low << 32 & M64, self.width << 32
            if self.code is not None:
                at = 4 + len(self.out)
                if at > len(self.code) + 8:
                    raise ValueError("truncated")
                self.target = self.target << 32 | int.from_bytes(self.code[at:at + 4].ljust(4, b"\0"), "big")

    def bit(self, zero, one=0):
        split = self.width * zero >> 64
        if self.code is not None:
            one = self.target >= split
        if one:
            self.narrow(split, self.width - split)
        else:
            self.narrow(0, split)
        return int(one)

    def uniform(self, n, value=0):
        found = 0
        while True:
            b = min(n, 16)
            w = self.width >> b
            u = self.target // w if self.code is not None else value >> n - b & (1 << b) - 1
            if u >= 1 << b:
                raise ValueError("corrupt")
            self.narrow(u * w, w)
            found, n = found << b | u, n - b
            if n == 0:
                return found

    def end(self):
        for n in range(9):
            unit = 1 << 64 - 8 * n
            v = -(-self.low // unit)
            if v * unit < self.low + self.width:
                if v >> 8 * n:
                    self.carry()
                return bytes(self.out) + (v & (1 << 8 * n) - 1).to_bytes(n, "big")

def others(m, members):
    held = set(members)
    return [p for p in range(m) if p not in held]

def adaptive(code, m, x):
    y = min(x, m - x)
    if m > 1 << 44 or y < 0 or y == 0 and code:
        raise ValueError("corrupt")
    if y > 8 * (len(code) + 8):
        raise ValueError("truncated")
    if y == 0:
        return list(range(m)) if x else []
    i = Interval(code)
    members = next_set(i, m, x)
    ended(i)
    return members

def next_set(i, m, x):
    y = min(x, m - x)
    if y == 0:
        return list(range(m)) if x else []
    if 8 * y >= m:
        return by_bits(i, m, x)
    members = by_gaps(i, m, y)
    return others(m, members) if x > m - x else members

def ended(i):
    same = i.end()
    if same != i.code:
        raise ValueError("truncated" if len(i.code) < len(same) else "corrupt")

def write_adaptive(m, members):
    i = Interval()
    add_set(i, m, members)
    return i.end()

def add_set(i, m, members):
    y = min(len(members), m - len(members))
    if 8 * y >= m > 0 < y:
        by_bits(i, m, len(members), set(members))
    elif y:
        by_gaps(i, m, y, members if y == len(members) else others(m, members))

def pair(code, m, x, n, y):  # CODERS.md, section 4
    methods = method_for(m, x), method_for(n, y)
    if max(methods):
        r = Reader(code)
        try:
            first = r.take("pair", r.uvarint("pair"))
        except Refused:
            raise ValueError("corrupt")
        return READ[methods[0]](first, m, x), READ[methods[1]](code[r.at:], n, y)
    if max(min(x, m - x), min(y, n - y)) > 8 * (len(code) + 8):
        raise ValueError("truncated")
    i = Interval(code)
    sets = next_set(i, m, x), next_set(i, n, y)
    ended(i)
    return sets

def write_pair(m, a, n, b):
    methods = method_for(m, len(a)), method_for(n, len(b))
    if max(methods):
        first = WRITE[methods[0]](m, a)
        return uvarint(len(first)) + first + WRITE[methods[1]](n, b)
    i = Interval()
    add_set(i, m, a)
    add_set(i, n, b)
    return i.end()

def by_bits(i, m, x, members=()):  # section 2.3
    found = []
    for group in range(0, m, 64):
        left, ones = m - group, x - len(found)
        if ones == 0:
            break
        if ones == left:
            return found + list(range(group, m))
        z = max(1 << 32, ((left - ones) << 64) // left)
        found += [p for p in range(group, min(group + 64, m)) if i.bit(z, p in members)]
        if len(found) > x or x - len(found) > max(0, m - group - 64):
            raise ValueError("corrupt")
    return found

def by_gaps(i, m, y, members=None):  # section 2.4
    r = [((m - y) << 64) // m]
    while r[-1] >= 1 << 62:
        r.append(r[-1] * r[-1] >> 64)
    top = len(r) - 1
    floor = sum(1 for v in r[:top] if v > 2**64 - 2**59)
    found, at = [], 0
    for n in range(y):
        left, gap = members[n] - at if members else 0, 0
        while i.bit(2**64 - r[top], left >> top > 0):
            gap, left = gap + (1 << top), left - (1 << top)
            if gap >= m:
                raise ValueError("corrupt")
        for j in range(top - 1, floor - 1, -1):
            gap += i.bit((1 << 127) // ((1 << 63) + (r[j] >> 1)), left >> j & 1) << j
        at += gap + i.uniform(floor, left)
        if at >= m:
            raise ValueError("corrupt")
        found.append(at)
        at += 1
    return found

def method_for(m, x):  # CODERS.md, section 1
    y = min(x, m - x)
    return int(y > 0 and y * ((m // y).bit_length() + 1) >= 8192)

READ, WRITE = (adaptive, block), (write_adaptive, write_block)

class Reader:  # FORMAT.md, sections 4 and 5
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, field, n):
        if n > len(self.data) - self.at:
            raise Refused("corrupt", field, self.at)
        self.at += n
        return self.data[self.at - n:self.at]

    def fixed(self, field, n):
        return int.from_bytes(self.take(field, n), "little")

    def uvarint(self, field, low=0, high=1 << 63, beyond="corrupt"):
        at, v = self.at, 0
        for n in range(10):
            if at + n >= len(self.data):
                break
            byte = self.data[at + n]
            v |= (byte & 0x7F) << 7 * n
            if byte < 0x80:
                if v > 1 << 63 or n > 0 and byte == 0 or v < low:
                    break
                if v > high:
                    raise Refused(beyond, field, at)
                self.at = at + n + 1
                return v
        raise Refused("corrupt", field, at)

    def section(self, name, m, x):
        at = self.at
        length = self.uvarint(name + " length")
        if length > len(self.data) - self.at:
            raise Refused("corrupt", name + " length", at)
        return self.set(name, length, m, x)

    def set(self, name, length, m, x):
        at, code = self.at, self.take(name, length)
        try:
            return READ[method_for(m, x)](code, m, x)
        except ValueError:
            raise Refused("corrupt", name, at)

def uvarint(v):
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    return bytes(out) + bytes([v])

def write_section(m, members):
    code = WRITE[method_for(m, len(members))](m, members)
    return uvarint(len(code)) + code

KINDS = ("", "filter", "delta", "pieces")

def decode(data, base=None):
    """The header and the positions of a message; base is a filter so decoded."""
    r = Reader(data)
    preamble(r)
    if len(data) < 8:
        raise Refused("corrupt", "checksum", len(data))
    r.data = data[:-4]
    if check_of(r.data) != int.from_bytes(data[-4:], "little"):
        raise Refused("corrupt", "checksum", len(data) - 4)
    h = header(r, (2,) if base else (1, 3))
    if base:
        h, members = delta(r, h, *base)
    elif h["kind"] == 3:
        members = all_pieces(r, h)
    else:
        members = r.set("positions", len(r.data) - r.at, h["bits"], h["count"])
    if base is None:  # before what else is wrong behind the positions: section 4
        check_state(h, members)
    if r.at != len(r.data):
        raise Refused("corrupt", "end", r.at)
    check_state(h, members)
    return h, members

def check_of(data, seed=0):
    return xxh64(data, seed & M64) & 0xFFFFFFFF

def check_state(h, members):
    if state_of(h, members := set(members)) != h["state"] or len(members) != h["count"]:
        raise Refused("corrupt", "state", h["state at"])

def preamble(r):
    if r.take("magic", 3) != b"SCD":
        raise Refused("corrupt", "magic", 0)
    if r.fixed("format version", 1) != 1:
        raise Refused("version", "format version", 3)

def header(r, due):
    h = {"kind": r.fixed("kind", 1), "extra": 0}
    if h["kind"] > 3:
        raise Refused("version", "kind", 4)
    if h["kind"] not in due:
        raise Refused("corrupt", "kind", 4)
    r.take("extension", r.fixed("extension length", 1))
    if h["kind"] != 2:
        geometry(r, h)
    h["epoch"] = r.uvarint("epoch", 1)
    h["sequence"] = r.uvarint("sequence")
    h["state at"] = r.at
    h["state"] = r.fixed("state", 8)
    h["keys"] = r.uvarint("keys")
    if h["kind"] != 2:
        h["count at"] = r.at
        h["count"] = r.uvarint("count", 0, h["bits"])
        if 8 * h["count"] > MAX_MEMORY:  # section 6
            raise Refused("too large", "count", h["count at"])
    return h

def geometry(r, h):
    at = r.at
    h["scheme"] = r.fixed("scheme", 1)
    if h["scheme"] != 1:
        raise Refused("version" if h["scheme"] else "corrupt", "scheme", at)
    h["hashes"] = r.fixed("hashes", 1)
    if not 1 <= h["hashes"] <= 32:
        raise Refused("corrupt", "hashes", at + 1)
    h["profile"] = r.fixed("profile", 1)
    h["tag"] = r.fixed("seed tag", 4)
    h["bits"] = r.uvarint("bits", 1, 1 << 44, "too large")

def piece_head(r, h):
    """The span, and the length of a piece."""
    span, at = r.uvarint("span", 1, h["bits"]), r.at
    length = r.uvarint("piece length", 0, MAX_BYTES, "too large")
    if length < 6:
        raise Refused("corrupt", "piece length", at)
    want, at = check_of(r.data[:r.at]), r.at
    if r.fixed("head checksum", 4) != want:
        raise Refused("corrupt", "head checksum", at)
    return span, length

def piece(h, i, span, data, offset, most):
    """The positions of piece i, of these bytes, which begin at offset."""
    r, start = Reader(data), i * span
    if r.fixed("piece", 4) != check_of(data[4:], h["state"] + i):
        raise Refused("corrupt", "piece", offset)
    size = min(span, h["bits"] - start)
    try:
        found = r.section("piece code", size, r.uvarint("piece count", 0, min(size, most)))
    except Refused as refused:
        raise Refused(refused.args[0], refused.args[1], offset + refused.args[2])
    for at in range(r.at, len(data)):
        if data[at]:
            raise Refused("corrupt", "padding", offset + at)
    return [start + p for p in found]

def all_pieces(r, h):
    found = []
    h["extra"], length = piece_head(r, h)
    for i in range(-(-h["bits"] // h["extra"])):
        at = r.at
        found += piece(h, i, h["extra"], r.take("piece", length), at, h["count"] - len(found))
    if len(found) != h["count"]:
        raise Refused("corrupt", "count", h["count at"])
    return found

def ask(read, position):
    """Whether a position is set in a filter in pieces, of which read(offset, length) gives bytes."""
    r = Reader(read(0, 512))
    preamble(r)
    h = header(r, (3,))
    span, length = piece_head(r, h)
    i = position // span
    at = r.at + i * length
    return position in piece(h, i, span, read(at, length), at, h["count"])

def delta(r, h, base, before):
    step_at = r.at
    step, state = r.uvarint("sequence step", 0, h["sequence"]), r.fixed("base state", 8)
    if (h["epoch"], h["sequence"] - step, state) != tuple(base[f] for f in ("epoch", "sequence", "state")):
        raise Refused("base", "base", step_at)
    h = dict(base, **h)
    after = changes(r, base, before)
    h["count"] = len(after)
    if step == 0 and after != before or after == before and state != h["state"]:
        raise Refused("corrupt", "sequence step", step_at)
    return h, after

def changes(r, base, before):
    at, counts, zeros, x0 = r.at, r.fixed("counts", 1), base["bits"] - len(before), len(before)
    a, b = counts & 15, counts >> 4
    a += r.uvarint("positions set", 0, 1 << 44) if a == 15 else 0
    b += r.uvarint("positions cleared", 0, 1 << 44) if b == 15 else 0
    if a > zeros or b > x0:
        raise Refused("corrupt", "counts", at)
    at = r.at
    try:
        return flip(before, *pair(r.take("changes", len(r.data) - at), zeros, a, x0, b))
    except ValueError:
        raise Refused("corrupt", "changes", at)

def flip(before, sets, clears):
    """before with ranks set among its clear positions, and ranks cleared among its own."""
    out, i, gone = [], 0, set(clears)
    for rank in sets:
        while i < len(before) and before[i] <= rank + i:  # the i positions before make it the rank
            if i not in gone:
                out.append(before[i])
            i += 1
        out.append(rank + i)
    return out + [p for j, p in enumerate(before[i:], i) if j not in gone]

def write_header(h, members):
    fixed = b"SCD" + bytes([1, h["kind"], 0])
    numbers = lambda *fields: b"".join(uvarint(h[f]) for f in fields)
    shape = bytes(h[f] for f in ("scheme", "hashes", "profile")) + h["tag"].to_bytes(4, "little") + uvarint(h["bits"])
    version = numbers("epoch", "sequence") + state_of(h, members).to_bytes(8, "little") + uvarint(h["keys"])
    return fixed + version if h["kind"] == 2 else fixed + shape + version + uvarint(len(members))

def sealed(data):
    return data + check_of(data).to_bytes(4, "little")

def write(h, members):
    """A filter, whole or in pieces."""
    m = h["bits"]
    data = write_header(h, members)
    if h["kind"] == 3:
        span, parts, at = h["extra"], [], 0
        for start in range(0, m, span):
            size, own = min(span, m - start), []
            while at < len(members) and members[at] < start + size:
                own.append(members[at] - start)
                at += 1
            parts.append(uvarint(len(own)) + write_section(size, own))
        length = max(map(len, parts))
        data = sealed(data + uvarint(span) + uvarint(4 + length))
        parts = [part.ljust(length, b"\0") for part in parts]
        state = state_of(h, members)
        return sealed(data + b"".join(check_of(part, state + i).to_bytes(4, "little") + part for i, part in enumerate(parts)))
    return sealed(data + WRITE[method_for(m, len(members))](m, members))

def write_delta(form, base, before, target, after):
    held, wanted, sets = set(before), set(after), []
    clears = [rank for rank, p in enumerate(before) if p not in wanted]
    below = 0
    for p in after:
        while below < len(before) and before[below] < p:
            below += 1
        if p not in held:
            sets.append(p - below)
    a, b = len(sets), len(clears)
    body = bytes([min(a, 15) | min(b, 15) << 4]) + b"".join(uvarint(n - 15) for n in (a, b) if n >= 15)
    body += write_pair(base["bits"] - len(before), sets, len(before), clears)
    if form == "bare":
        return body
    step = uvarint(target["sequence"] - base["sequence"]) + base["state"].to_bytes(8, "little")
    return sealed(write_header(dict(target, kind=2), after) + step + body)

FIELDS = "scheme", "hashes", "profile", "tag", "bits", "epoch", "sequence", "state", "keys", "extra"

def answer(what, *args):
    binary = lambda i: bytes.fromhex(args[i].strip("-"))
    listed = lambda i: [int(p) for p in args[i].split(",") if p != "-"]
    some = lambda members: ",".join(map(str, members)) or "-"
    whole = lambda h, members: " ".join([KINDS[h["kind"]]] + [str(h[f]) for f in FIELDS] + [some(members)])
    if what == "seed":
        return f"{seed_of(binary(0))} {tag_of(seed_of(binary(0)))}"
    if what == "key":
        return str(xxh64(binary(1), int(args[0])))
    if what == "positions":
        return some(positions(*map(int, args)))
    if what == "code":
        return WRITE[int(args[0])](int(args[1]), listed(2)).hex() or "-"
    if what == "decode":
        return some(READ[int(args[0])](binary(3), int(args[1]), int(args[2])))
    if what == "read":
        return whole(*decode(binary(0)))
    if what == "apply":
        return whole(*decode(binary(0), decode(binary(1))))
    if what == "write":
        h = dict(zip(FIELDS, map(int, args[1:11])), kind=KINDS.index(args[0]))
        return write(h, listed(11)).hex()
    if what == "diff":
        return write_delta(args[0], *decode(binary(1)), *decode(binary(2))).hex()
    if what == "bare":
        return some(changes(Reader(binary(0)), *decode(binary(1))))
    if what == "ask":
        return str(int(ask(lambda at, n: binary(0)[at:at + n], int(args[1]))))
    raise Refused("corrupt", "line", 0)

if __name__ == "__main__":
    for line in sys.stdin:
        try:
            print(answer(*line.split()), flush=True)
        except Refused as refused:
            error, field, offset = refused.args
            print("refused", error, offset, field, flush=True)
        except ValueError as refused:  # of a coder, asked alone
            print("refused", refused, 0, "code", flush=True)
