"""The block method of CODERS.md, section 3, read."""
from math import comb

def block(code, m, x):
    y = min(x, m - x)
    if y < 0 or y > 8 * (len(code) + 8):
        raise ValueError("truncated")
    if y == 0:
        if code:
            raise ValueError("bytes for nothing")
        return list(range(m)) if x else []
    size = 16 if 13 * y >= m else 32 if 26 * y >= m else 0
    symbols, jump = gap_model(m, y) if size == 0 else block_model(m, y, size)
    log = 11 if size == 0 else 12
    owner, kept = states(symbols, log), {s[0] for s in symbols[:-1]}
    found = []
    for start, end, count, part in chunks(code, m, y):
        if count == 0:
            continue
        t = Tans(part, owner, symbols, log)
        if size == 0:
            found += [start + p for p in gap_members(t, end - start, count, jump, len(symbols) - 1)]
        else:
            found += [start + p for p in block_members(t, end - start, count, size, kept, len(symbols) - 1)]
        t.end()
    if x > m - x:
        return sorted(set(range(m)) - set(found))
    return found

def chunks(code, m, y):  # section 3.1
    e = y * ((m // y).bit_length() + 1) >> 20
    span = m
    if e >= 2:
        p = 1 << e.bit_length() - 1
        span = 64 * -(-(-(-m // p)) // 64)
    n, at = -(-m // span), 0

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
                raise ValueError("not the fewest bytes")
            out.append(v)
        return out

    lengths, counts = numbers(n - 1), numbers(n - 1)
    lengths.append(len(code) - at - sum(lengths))
    counts.append(y - sum(counts))
    if lengths[-1] < 0 or counts[-1] < 0:
        raise ValueError("more than there is")
    for i in range(n):
        start, end = i * span, min((i + 1) * span, m)
        if counts[i] > end - start or (counts[i] == 0) != (lengths[i] == 0):
            raise ValueError("a chunk that cannot be")
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
    def __init__(self, code, owner, symbols, log):
        if not code or code[0] == 0:
            raise ValueError("no first one")
        self.bits, self.left = int.from_bytes(code, "little"), 8 * len(code)
        self.owner, self.symbols, self.size = owner, symbols, 1 << log
        while not self.take(1):
            pass
        self.states = [self.take(log), self.take(log)]

    def take(self, n):
        if n > self.left:
            raise ValueError("truncated")
        v = self.bits & (1 << n) - 1
        self.bits, self.left = self.bits >> n, self.left - n
        return v

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
            raise ValueError("not the end")

def gap_members(t, span, count, jump, last):
    at, found = 0, []
    while len(found) < count:
        s, value = t.next()
        at += value
        if s != last:
            found.append(at)
            at += 1
        if at > span:
            raise ValueError("beyond the chunk")
    return found

HALVES = [[] for _ in range(17)]  # numbers of 16 bits by how many ones they have
for _v in range(1 << 16):
    HALVES[bin(_v).count("1")].append(_v)

def unrank(rank, size):
    c = 0
    while rank >= comb(size, c):
        rank, c = rank - comb(size, c), c + 1
        if c > size:
            raise ValueError("no such rank")
    if size == 16:
        return HALVES[c][rank]
    for low in range(max(0, c - 16), min(16, c) + 1):
        n = comb(16, low) * comb(16, c - low)
        if rank < n:
            i, j = divmod(rank, comb(16, c - low))
            return HALVES[low][i] | HALVES[c - low][j] << 16
        rank -= n

def block_members(t, span, count, size, kept, escape):
    firsts = sorted(kept)
    widths = {s[0]: s[1] for s in t.symbols[:-1]}
    found = []
    for at in range(0, -(-span // 64) * 64, size):
        s, rank = t.next()
        if s == escape and any(f <= rank < f + (1 << widths[f]) for f in firsts):
            raise ValueError("an escape for what is kept")
        bits = unrank(rank, size)
        found += [at + i for i in range(size) if bits >> i & 1]
    if len(found) != count or found[-1] >= span:
        raise ValueError("ones beyond the chunk, or too many")
    return found
