"""The block method of CODERS.md, section 3, read and written."""
from bisect import bisect_right
from functools import lru_cache
from math import comb

def block(code, m, x):
    y = min(x, m - x)
    if m > 1 << 44 or y < 0 or y == 0 and code:
        raise ValueError("corrupt")
    if y > 8 * (len(code) + 8):
        raise ValueError("truncated")
    if y == 0:
        return list(range(m)) if x else []
    size, log, symbols, jump, owner = model(m, y)
    found = []
    for start, end, count, part in chunks(code, m, y):
        if count == 0:
            continue
        t = Tans(part, owner, symbols, log, end == m)
        if size == 0:
            found += [start + p for p in gap_members(t, end - start, count, len(symbols) - 1)]
        else:
            found += [start + p for p in block_members(t, end - start, count, size)]
        t.end()
    if x > m - x:
        return sorted(set(range(m)) - set(found))
    return found

def write_block(m, members):
    if len(members) > m - len(members):
        members = sorted(set(range(m)) - set(members))
    if not members:
        return b""
    size, log, symbols, jump, owner = model(m, len(members))
    firsts, places = [s[0] for s in symbols[:-1]], {}
    for state, own in enumerate(owner):
        places[own] = state  # by symbol, and the number among its states plus the frequency
    frequencies = [0] * len(symbols)
    for s, _ in owner:
        frequencies[s] += 1

    def symbol(value):
        s = bisect_right(firsts, value) - 1
        return s if s >= 0 and value < firsts[s] + (1 << symbols[s][1]) else len(symbols) - 1

    lengths, counts, codes, at, step = b"", b"", b"", 0, span(m, len(members))
    for start in range(0, m, step):
        end, own = min(start + step, m), []
        while at < len(members) and members[at] < end:
            own.append(members[at] - start)
            at += 1
        values = (block_values if size else gap_values)(own, end - start, size or jump)
        code = chunk([(symbol(v), v) for v in values], symbols, frequencies, places, log) if own else b""
        codes += code
        if end < m:
            lengths, counts = lengths + uvarint(len(code)), counts + uvarint(len(own))
    return lengths + counts + codes

def chunk(values, symbols, frequencies, places, log):  # section 3.3
    states, parts = [0, 0], []  # less L
    for s, value in reversed(values):
        base, raw, _ = symbols[s]
        state, shed = states[0] + (1 << log), 0
        while state >> shed >= 2 * frequencies[s]:
            shed += 1
        parts.append((raw + shed, value - base | (state & (1 << shed) - 1) << raw))
        states = [states[1], places[s, state >> shed]]
    # It is now the turn of the state that did not code the first symbol.
    parts += [(log, states[0]), (log, states[1])]
    zeros = -(1 + sum(n for n, _ in parts)) % 8
    out, bits, have = bytearray(), 1 << zeros, zeros + 1
    for n, v in reversed(parts):
        bits, have = bits | v << have, have + n
        while have >= 8:
            out.append(bits & 0xFF)
            bits, have = bits >> 8, have - 8
    return bytes(out)

def block_values(members, span, size):
    blocks = [0] * (-(-span // 64) * 64 // size)
    for p in members:
        blocks[p // size] |= 1 << p % size
    return [rank_of(b, size) for b in blocks]

def gap_values(members, _, jump):
    out, at = [], 0
    for p in members:
        jumps, left = divmod(p - at, jump)
        out += [jump] * jumps + [left]
        at = p + 1
    return out

def uvarint(v):
    return bytes([v]) if v < 0x80 else bytes([v & 0x7F | 0x80]) + uvarint(v >> 7)

def model(m, y):
    """Bits in a block, log, symbols, J, and of each state its symbol and number."""
    size = 16 if 13 * y >= m else 32 if 26 * y >= m else 0
    symbols, jump = gap_model(m, y) if size == 0 else block_model(m, y, size)
    log = 11 if size == 0 else 12
    return size, log, symbols, jump, states(symbols, log)

def span(m, y):  # section 3.1
    e = y * ((m // y).bit_length() + 1) >> 20
    if e < 2:
        return m
    p = 1 << e.bit_length() - 1
    return 64 * -(-(-(-m // p)) // 64)

def chunks(code, m, y):
    step = span(m, y)
    n, at = -(-m // step), 0

    def numbers(k):
        nonlocal at
        out = []
        for _ in range(k):
            v, shift = 0, 0
            while True:
                if at >= len(code):
                    raise ValueError("truncated")
                byte = code[at]
                at += 1
                v |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            if shift > 7 and byte == 0:
                raise ValueError("corrupt")
            out.append(v)
        return out

    lengths, counts = numbers(n - 1), numbers(n - 1)
    lengths.append(len(code) - at - sum(lengths))
    counts.append(y - sum(counts))
    if lengths[-1] < 0 or counts[-1] < 0:
        raise ValueError("corrupt")
    for i in range(n):
        start, end = i * step, min((i + 1) * step, m)
        if counts[i] > end - start or (counts[i] == 0) != (lengths[i] == 0):
            raise ValueError("corrupt")
        yield start, end, counts[i], code[at:at + lengths[i]]
        at += lengths[i]

def block_model(m, y, size):  # section 3.4
    q = ((m - y) << 64) // m
    for _ in range(4 if size == 16 else 5):
        q = q * q >> 64
    o = min((y << 64) // (m - y), 2**64 - 1)
    symbols, rank, number, left = [], 0, 0, 2**64
    for c in range(size + 1):
        for j in range(comb(size, c).bit_length() - 1, -1, -1):
            if comb(size, c) >> j & 1:
                if q << j >= 1 << 49 and number < 255:
                    symbols.append((rank, j, q << j))
                    left -= q << j
                rank, number = rank + (1 << j), number + 1
        q = q * o >> 64
    return symbols + [(0, size, left)], None

def gap_model(m, y):  # section 3.5
    r, raw = ((m - y) << 64) // m, 0
    while r * r >> 64 >= 7 << 61:
        r, raw = r * r >> 64, raw + 1
    symbols, left, base = [], 2**64 - 1, 0
    while left >= 1 << 57:
        rest = left * r >> 64
        symbols.append((base, raw, left - rest))
        left, base = rest, base + (1 << raw)
    return symbols + [(base, 0, left)], base

def states(symbols, log):  # section 3.2
    size = 1 << log
    weights = [s[2] for s in symbols]
    f = [max(1, (w >> 63 - log) + 1 >> 1) for w in weights]
    while sum(f) != size:
        if sum(f) < size:
            i = max(range(len(f)), key=lambda i: (weights[i] // (2 * f[i] + 1), -i))
            f[i] += 1
        else:
            i = min((i for i in range(len(f)) if f[i] > 1), key=lambda i: (weights[i] // (2 * f[i] - 1), i))
            f[i] -= 1
    owner, at = [None] * size, 0
    for s, n in enumerate(f):
        for _ in range(n):
            owner[at] = s
            at = (at + 5 * size // 8 + 3) % size
    seen, out = f[:], []
    for s in owner:  # a state's symbol, and its number among that symbol's states plus the frequency
        out.append((s, seen[s]))
        seen[s] += 1
    return out

class Tans:  # section 3.3
    def __init__(self, code, owner, symbols, log, last):
        if not code or code[0] == 0:
            raise ValueError("corrupt")
        self.code, self.at, self.left, self.last = code, 0, 8 * len(code), last
        self.owner, self.symbols, self.size = owner, symbols, 1 << log
        while not self.take(1):
            pass
        self.states = [self.take(log), self.take(log)]

    def take(self, n):
        if n > self.left:
            raise ValueError("truncated" if self.last else "corrupt")
        byte, bit = divmod(self.at, 8)
        self.at, self.left = self.at + n, self.left - n
        return int.from_bytes(self.code[byte:byte + 8], "little") >> bit & (1 << n) - 1

    def next(self):
        s, t = self.owner[self.states[0]]
        base, raw, _ = self.symbols[s]
        value = base + self.take(raw)
        while t < self.size:
            t = t << 1
            raw -= 1
        n = self.symbols[s][1] - raw
        self.states = [self.states[1], t + self.take(n) - self.size]
        return s, value

    def end(self):
        if self.left or self.states != [0, 0]:
            raise ValueError("corrupt")

def gap_members(t, span, count, last):
    at, found = 0, []
    while len(found) < count:
        s, value = t.next()
        at += value
        if s != last:
            found.append(at)
            at += 1
        if at > span:
            raise ValueError("corrupt")
    return found

HALVES = [[] for _ in range(17)]  # numbers of 16 bits by how many ones they have
RANKS = []  # and of each number its place there
for _v in range(1 << 16):
    RANKS.append(len(HALVES[bin(_v).count("1")]))
    HALVES[bin(_v).count("1")].append(_v)

def groups(c):
    """How many blocks of 32 bits with c ones have so many in the low half."""
    return [(low, comb(16, low), comb(16, c - low)) for low in range(max(0, c - 16), min(16, c) + 1)]

@lru_cache(1 << 16)
def rank_of(bits, size):
    c = bin(bits).count("1")
    rank = sum(comb(size, i) for i in range(c))
    if size == 16:
        return rank + RANKS[bits]
    lower = bin(bits & 0xFFFF).count("1")
    rank += sum(lows * highs for low, lows, highs in groups(c) if low < lower)
    return rank + RANKS[bits & 0xFFFF] * comb(16, c - lower) + RANKS[bits >> 16]

@lru_cache(1 << 16)
def unrank(rank, size):
    c = 0
    while rank >= comb(size, c):
        rank, c = rank - comb(size, c), c + 1
    if size == 16:
        return HALVES[c][rank]
    for low, lows, highs in groups(c):
        if rank < lows * highs:
            i, j = divmod(rank, highs)
            return HALVES[low][i] | HALVES[c - low][j] << 16
        rank -= lows * highs

def block_members(t, span, count, size):
    escape, found = len(t.symbols) - 1, []
    for at in range(0, -(-span // 64) * 64, size):
        s, rank = t.next()
        if s == escape and any(f <= rank < f + (1 << raw) for f, raw, _ in t.symbols[:-1]):
            raise ValueError("corrupt")
        bits = unrank(rank, size)
        found += [at + i for i in range(size) if bits >> i & 1]
    if len(found) != count or found[-1] >= span:
        raise ValueError("corrupt")
    return found
