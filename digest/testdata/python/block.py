"""The block method of CODERS.md, section 3, read and written."""
from bisect import bisect_right
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
    t = Tans(code, owner, symbols, log)
    found = block_members(t, m, y) if size else gap_members(t, m, y, len(symbols) - 1)
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

    values = block_values(members, m) if size else gap_values(members, jump)
    return coded([(symbol(v), v) for v in values], symbols, frequencies, places, log)

def coded(values, symbols, frequencies, places, log):  # section 3.3
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

def block_values(members, m):
    blocks = [0] * (-(-m // 64) * 4)
    for p in members:
        blocks[p // 16] |= 1 << p % 16
    return [RANKS[b] for b in blocks]

def gap_values(members, jump):
    out, at = [], 0
    for p in members:
        jumps, left = divmod(p - at, jump)
        out += [jump] * jumps + [left]
        at = p + 1
    return out

def model(m, y):
    """Whether symbols are blocks, log, symbols, J, and of each state its symbol and number."""
    size = 18 * y >= m  # section 3.1
    symbols, jump = block_model(m, y) if size else gap_model(m, y)
    log = 12 if size else 11
    return size, log, symbols, jump, states(symbols, log)

def block_model(m, y):  # section 3.4
    q = ((m - y) << 64) // m
    for _ in range(4):
        q = q * q >> 64
    o = min((y << 64) // (m - y), 2**64 - 1)
    symbols, rank, left = [], 0, 2**64
    for c in range(17):
        for j in range(comb(16, c).bit_length() - 1, -1, -1):
            if comb(16, c) >> j & 1:
                if q << j >= 1 << 49:
                    symbols.append((rank, j, q << j))
                    left -= q << j
                rank += 1 << j
        q = q * o >> 64
    return symbols + [(0, 16, left)], None

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
    def __init__(self, code, owner, symbols, log):
        if not code or code[0] == 0:
            raise ValueError("corrupt")
        self.code, self.at, self.left = code, 0, 8 * len(code)
        self.owner, self.symbols, self.size = owner, symbols, 1 << log
        while not self.take(1):
            pass
        self.states = [self.take(log), self.take(log)]

    def take(self, n):
        if n > self.left:
            raise ValueError("truncated")
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

def gap_members(t, m, count, last):
    at, found = 0, []
    while len(found) < count:
        s, value = t.next()
        at += value
        if s != last:
            found.append(at)
            at += 1
        if at > m:
            raise ValueError("corrupt")
    return found

BLOCKS = sorted(range(1 << 16), key=lambda v: (bin(v).count("1"), v))  # by rank
RANKS = [0] * (1 << 16)
for _rank, _v in enumerate(BLOCKS):
    RANKS[_v] = _rank

def block_members(t, m, count):
    escape, found = len(t.symbols) - 1, []
    for at in range(0, -(-m // 64) * 64, 16):
        s, rank = t.next()
        if s == escape and any(f <= rank < f + (1 << raw) for f, raw, _ in t.symbols[:-1]):
            raise ValueError("corrupt")
        found += [at + i for i in range(16) if BLOCKS[rank] >> i & 1]
    if len(found) != count or found[-1] >= m:
        raise ValueError("corrupt")
    return found
