"""A second reader of the digest format, written from FORMAT.md and CODERS.md.

It knows filters, whole and in pieces, and deltas, scheme 1, and all codings. vectors.py runs it. Comments
name sections.
"""
import hashlib

from block import block

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

def positions(m, k, h):  # scheme 1; a reader may refuse the others
    d = mix(h + GAMMA) | 1
    return list(dict.fromkeys((h + i * d & M64) * m >> 64 for i in range(k)))  # one that comes twice counts once

def state_of(m, k, tag, members):  # section 3
    return (mix(m + mix(k + 256 * 1 + 65536 * tag)) + sum(mix(p + GAMMA) for p in members)) & M64

class Interval:
    """low, width and words of CODERS.md, section 2.1, and the code that is read."""

    def __init__(self, code):
        self.code, self.low, self.width, self.words = code, 0, M64, 0

    def target(self):
        n = 8 + 4 * self.words
        return int.from_bytes(self.code[:n].ljust(n, b"\0"), "big") - self.low

    def narrow(self, start, width):
        self.low, self.width = self.low + start, width
        while self.width < 1 << 32:
            self.low, self.width, self.words = self.low << 32, self.width << 32, self.words + 1

    def bit(self, zero):
        split = self.width * zero >> 64
        if self.target() < split:
            self.narrow(0, split)
            return 0
        self.narrow(split, self.width - split)
        return 1

    def uniform(self, n):
        value = 0
        while True:
            b = min(n, 16)
            w = self.width >> b
            u = self.target() // w
            if u >= 1 << b:
                raise ValueError("beyond the last part")
            self.narrow(u * w, w)
            value, n = value << b | u, n - b
            if n == 0:
                return value

    def end(self):
        n = 0
        while True:
            unit = 64 - 8 * n
            v = -(-self.low >> unit)
            if v << unit < self.low + self.width:
                return v.to_bytes(4 * self.words + n, "big")
            n += 1

def adaptive(code, m, x):
    y = min(x, m - x)
    if y > 8 * (len(code) + 8):
        raise ValueError("truncated")
    if y == 0:
        if code:
            raise ValueError("bytes for nothing")
        return list(range(m)) if x else []
    i = Interval(code)
    members = by_bits(i, m, x) if 8 * y >= m else by_gaps(i, m, y)
    if i.end() != code:
        raise ValueError("not the code of this set")
    if 8 * y < m and x > m - x:  # the members are those that are not in the set
        return sorted(set(range(m)) - set(members))
    return members

def by_bits(i, m, x):  # section 2.3
    found = []
    for group in range(0, m, 64):
        left, ones = m - group, x - len(found)
        if ones == 0:
            break
        if ones == left:
            return found + list(range(group, m))
        z = max(1 << 32, ((left - ones) << 64) // left)
        found += [p for p in range(group, min(group + 64, m)) if i.bit(z)]
        if len(found) > x or x - len(found) > max(0, m - group - 64):
            raise ValueError("more than remain")
    return found

def by_gaps(i, m, y):  # section 2.4
    r = [((m - y) << 64) // m]
    while r[-1] >= 1 << 62:
        r.append(r[-1] * r[-1] >> 64)
    top = len(r) - 1
    floor = sum(1 for v in r[:top] if v > 2**64 - 2**59)
    found, at = [], 0
    for _ in range(y):
        gap = 0
        while i.bit(2**64 - r[top]):
            gap += 1 << top
            if gap >= m:
                raise ValueError("beyond the last position")
        low = 0
        for j in range(top - 1, floor - 1, -1):
            low |= i.bit((1 << 127) // ((1 << 63) + (r[j] >> 1))) << j
        at += gap + low + i.uniform(floor)
        if at >= m:
            raise ValueError("beyond the last position")
        found.append(at)
        at += 1
    return found

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

    def uvarint(self, field, low=0, high=M64, beyond="corrupt"):
        at, v = self.at, 0
        for n in range(10):
            if at + n >= len(self.data):
                break
            byte = self.data[at + n]
            v |= (byte & 0x7F) << 7 * n
            if byte < 0x80:
                self.at = at + n + 1
                if v > M64 or n > 0 and byte == 0 or v < low:
                    break
                if v > high:
                    raise Refused(beyond, field, at)
                return v
        raise Refused("corrupt", field, at)

    def section(self, name, m, x):
        at = self.at
        coding = self.fixed(name + " coding", 1)
        if coding > 3:
            raise Refused("corrupt", name + " coding", at)
        at = self.at
        length = self.uvarint(name + " length")
        if length > len(self.data) - self.at:
            raise Refused("corrupt", name + " length", at)
        at, payload = self.at, self.take(name, length)
        try:
            return [bitmap, gaps, adaptive, block][coding](payload, m, x)
        except ValueError:
            raise Refused("corrupt", name, at)

def bitmap(payload, m, x):
    bits = int.from_bytes(payload, "little")
    found = [p for p in range(8 * len(payload)) if bits >> p & 1]
    if len(payload) != -(-m // 8) or len(found) != x or found and found[-1] >= m:
        raise ValueError("bitmap")
    return found

def gaps(payload, m, x):
    r, at, found = Reader(payload), 0, []
    try:
        for _ in range(x):
            at += r.uvarint("gap")
            found.append(at)
            at += 1
    except Refused:
        raise ValueError("gap")
    if r.at != len(payload) or at > m:
        raise ValueError("gaps")
    return found

def decode(data, base=None):
    """Returns the header and the positions of a message; base is a filter so decoded."""
    r = Reader(data)
    kinds = preamble(r, (1,) if base is None else (2, 3))
    if len(data) < 12:
        raise Refused("corrupt", "checksum", len(data))
    r.data = data[:-8]
    if xxh64(r.data, 0) != int.from_bytes(data[-8:], "little"):
        raise Refused("corrupt", "checksum", len(data) - 8)
    h = header(r, kinds)
    m, x = h["bits"], h["count"]
    if h["kind"] == 5:
        members = all_pieces(r, h)
    elif base is None:
        members = r.section("positions", m, x)
    else:
        members = delta(r, h, *base)
    if r.at != len(r.data):
        raise Refused("corrupt", "end", r.at)
    if state_of(m, h["hashes"], h["tag"], members) != h["state"]:
        raise Refused("corrupt", "state", h["state at"])
    return h, members

def preamble(r, kinds):
    """The kinds that a message may be of, where one of kinds is due."""
    magic = r.take("magic", 3)
    if magic not in (b"SCD", b"SCP"):
        raise Refused("corrupt", "magic", 0)
    if r.fixed("format version", 1) != 1:
        raise Refused("version", "format version", 3)
    return kinds if magic == b"SCD" else (5,) if 1 in kinds else ()

def header(r, kinds):
    h = {"kind": r.fixed("kind", 1)}
    if h["kind"] not in kinds:
        raise Refused("corrupt", "kind", 4)
    h["scheme"], h["hashes"], reserved = (r.fixed(f, 1) for f in ("scheme", "hashes", "reserved"))
    for field, good, at in ("scheme", h["scheme"] == 1, 5), ("hashes", 1 <= h["hashes"] <= 32, 6), ("reserved", reserved == 0, 7):
        if not good:
            raise Refused("corrupt", field, at)
    h["tag"] = r.fixed("seed tag", 4)
    m = h["bits"] = r.uvarint("bits", 1, 1 << 40, "too large")
    h["epoch"] = r.uvarint("epoch", 1, 1 << 63)
    h["sequence"] = r.uvarint("sequence", 0, 1 << 63)
    h["state at"] = r.at
    h["state"] = r.fixed("state", 8)
    h["keys"] = r.uvarint("keys", 0, 1 << 63)
    h["count at"] = r.at
    h["count"] = r.uvarint("count", 0, m)
    if 8 * h["count"] > MAX_MEMORY:  # section 6
        raise Refused("too large", "count", h["count at"])
    return h

def index(r, m):
    """The span, and of each piece the offset, the length and the check."""
    span = r.uvarint("span", 1, m)
    at, pieces = r.at, -(-m // span)
    length = r.uvarint("index length", 0, MAX_BYTES, "too large")
    if length < 5 * pieces:
        raise Refused("corrupt", "index length", at)
    start, end = r.at, r.at + length
    if end + 8 > len(r.data):
        raise Refused("corrupt", "index", start)
    if xxh64(r.data[:end], 0) != int.from_bytes(r.data[end:end + 8], "little"):
        raise Refused("corrupt", "head checksum", end)
    entries, offset, i = [], end + 8, Reader(r.data[:end])
    i.at = start
    for _ in range(pieces):
        at = i.at
        try:
            length, check = i.uvarint("piece length", 1), i.fixed("piece check", 4)
        except Refused:
            raise Refused("corrupt", "piece length", at)
        if length > MAX_BYTES - offset - 8:
            raise Refused("too large", "piece length", at)
        entries.append((offset, length, check))
        offset += length
    if i.at != end:
        raise Refused("corrupt", "index", i.at)
    r.at = end + 8
    return span, entries

def piece(data, offset, check, start, size, most):
    """The positions of the piece that is these bytes, which begin at offset."""
    if xxh64(data, 0) & 0xFFFFFFFF != check:
        raise Refused("corrupt", "piece", offset)
    r = Reader(data)
    try:
        y = r.uvarint("piece count", 0, min(size, most, 1 << 20))
    except Refused:
        raise Refused("corrupt", "piece count", offset)
    rarer = min(y, size - y)
    method = block if rarer and rarer * ((size // rarer).bit_length() + 1) >= 8192 else adaptive  # CODERS.md, section 1
    try:
        return [start + p for p in method(data[r.at:], size, y)]
    except ValueError:
        raise Refused("corrupt", "piece", offset + r.at)

def all_pieces(r, h):
    m, found = h["bits"], []
    span, entries = index(r, m)
    for i, (offset, length, check) in enumerate(entries):
        members = piece(r.take("piece", length), offset, check, i * span, min(span, m - i * span), h["count"] - len(found))
        found += members
    if len(found) != h["count"]:
        raise Refused("corrupt", "count", h["count at"])
    return found

def ask(read, position):
    """Whether a position is set in a filter in pieces, of which read(offset, length) gives bytes."""
    r = Reader(read(0, 4096))
    kinds = preamble(r, (1,))
    m, most = (h := header(r, kinds))["bits"], h["count"]
    at = r.at
    while True:
        try:
            span, entries = index(r, m)
            break
        except Refused as refused:  # the index is longer
            if refused.args[1] != "index" or len(r.data) != 4096:
                raise
            r.data, r.at = read(0, MAX_BYTES), at
    i = position // span
    offset, length, check = entries[i]
    return position in piece(read(offset, length), offset, check, i * span, min(span, m - i * span), most)

def delta(r, h, base, before):
    m, x = h["bits"], h["count"]
    step_at = r.at
    step = r.uvarint("sequence step", 0, h["sequence"])
    state_at = r.at
    state, x0 = r.fixed("base state", 8), r.uvarint("base count", 0, m)
    named = (h["hashes"], h["tag"], m, h["epoch"], h["sequence"] - step, state, x0)
    if named != tuple(base[f] for f in ("hashes", "tag", "bits", "epoch", "sequence", "state", "count")):
        raise Refused("base", "base", step_at)
    held = set(before)
    if h["kind"] == 3:
        flips = set(r.section("flips", m, r.uvarint("flips", 0, m)))
    else:
        at = r.at
        a = r.uvarint("positions set", 0, m - x0)
        b = x0 + a - x
        if not 0 <= b <= x0:
            raise Refused("corrupt", "positions set", at)
        flips = {unrank_clear(rank, before) for rank in r.section("positions set", m - x0, a)}
        flips |= {before[rank] for rank in r.section("positions cleared", x0, b)}
    if step == 0 and flips or not flips and (state != h["state"] or x0 != x):
        raise Refused("corrupt", "sequence step", step_at)
    return sorted(held ^ flips)

def unrank_clear(rank, before):
    """The position of that rank among those that are not in before."""
    for p in before:
        if p > rank:
            break
        rank += 1
    return rank
