// A third reader and writer of the digest format, from FORMAT.md and CODERS.md alone: one file of C11 for compilers
// with 128-bit integers, no library but C's own. Comments name sections: "F 4" is FORMAT.md's, "C 2.1" CODERS.md's.
//
//	cc -O2 -o format format.c && ./format
//
// It answers each line on standard input by one line; ../../IMPLEMENTING.md says which.
#include <inttypes.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint64_t u64;
typedef unsigned __int128 u128;

#define GAMMA UINT64_C(0x9e3779b97f4a7c15)
enum { MAX_BYTES = 64 << 20, MAX_MEMORY = 256 << 20 };

// Memory lives until the line is answered.
typedef struct Block { struct Block *next; u64 pad; } Block;
static Block *blocks;

static void *memory(size_t n) {
  Block *b = malloc(sizeof *b + n + 1);
  if (!b) exit(3);
  b->next = blocks, blocks = b;
  return b + 1;
}

static void forget(void) {
  for (Block *b; (b = blocks); free(b)) blocks = b->next;
}

typedef struct { u64 n, room, *at; } List; // ascending, where it is a set
typedef struct { u64 n, room; u8 *at; } Bytes;

static void push(List *l, u64 v) {
  if (l->n == l->room) {
    u64 *old = l->at;
    l->at = memory((l->room = 2 * l->room + 16) * sizeof *old);
    if (l->n) memcpy(l->at, old, l->n * sizeof *old);
  }
  l->at[l->n++] = v;
}

static void put(Bytes *b, const u8 *from, u64 n) {
  if (b->n + n > b->room) {
    u8 *old = b->at;
    b->at = memory(b->room = 2 * b->room + n + 64);
    if (b->n) memcpy(b->at, old, b->n);
  }
  if (n) memcpy(b->at + b->n, from, n);
  b->n += n;
}

static void put1(Bytes *b, u8 v) { put(b, &v, 1); }
static void put_fixed(Bytes *b, u64 v, int n) { for (; n; n--, v >>= 8) put1(b, (u8)v); }
static void put_all(Bytes *b, Bytes more) { put(b, more.at, more.n); }
static void put_uvarint(Bytes *b, u64 v) {
  for (; v >= 0x80; v >>= 7) put1(b, (u8)(v | 0x80));
  put1(b, (u8)v);
}

// A refusal: F 1. What a coder refuses within a section is the section's.
static jmp_buf refusal;
static const char *error, *section_name;
static char field[64];
static u64 offset, section_at;

static _Noreturn void refuse(const char *e, const char *f, u64 at) {
  error = e, offset = at;
  snprintf(field, sizeof field, "%s", f);
  longjmp(refusal, 1);
}

static _Noreturn void bad(const char *e) {
  if (section_name) refuse("corrupt", section_name, section_at);
  refuse(e, "code", 0);
}

static u64 least(u64 a, u64 b) { return a < b ? a : b; }
static int len(u64 v) {
  int n = 0;
  for (; v; v >>= 1) n++;
  return n;
}

// ---- Hashes: F 2

static u64 word(const u8 *p, int n) {
  u64 v = 0;
  while (n--) v = v << 8 | p[n];
  return v;
}

static u64 rotl(u64 x, int n) { return x << n | x >> (64 - n); }

static u64 xxh64(const u8 *p, u64 n, u64 seed) {
  const u64 p1 = UINT64_C(0x9E3779B185EBCA87), p2 = UINT64_C(0xC2B2AE3D27D4EB4F), p3 = UINT64_C(0x165667B19E3779F9),
            p4 = UINT64_C(0x85EBCA77C2B2AE63), p5 = UINT64_C(0x27D4EB2F165667C5);
  u64 h = seed + p5, left = n;
  if (n >= 32) {
    u64 lane[4] = {seed + p1 + p2, seed + p2, seed, seed - p1};
    for (; left >= 32; left -= 32, p += 32)
      for (int i = 0; i < 4; i++) lane[i] = rotl(lane[i] + word(p + 8 * i, 8) * p2, 31) * p1;
    h = rotl(lane[0], 1) + rotl(lane[1], 7) + rotl(lane[2], 12) + rotl(lane[3], 18);
    for (int i = 0; i < 4; i++) h = (h ^ rotl(lane[i] * p2, 31) * p1) * p1 + p4;
  }
  h += n;
  for (; left >= 8; left -= 8, p += 8) h = rotl(h ^ rotl(word(p, 8) * p2, 31) * p1, 27) * p1 + p4;
  if (left >= 4) h = rotl(h ^ word(p, 4) * p1, 23) * p2 + p3, left -= 4, p += 4;
  for (; left; left--, p++) h = rotl(h ^ *p * p5, 11) * p1;
  h = (h ^ h >> 33) * p2;
  h = (h ^ h >> 29) * p3;
  return h ^ h >> 32;
}

// The roots' bits that SHA-256 is made of come from integers.
static uint32_t root_bits(unsigned prime, int cube) { // 32 bits behind the point
  u128 lo = 0, hi = (u128)1 << 40;
  while (hi - lo > 1) { // lo^2 or lo^3 is at most prime, both scaled
    u128 mid = (lo + hi) / 2;
    int small = cube ? mid * mid <= ((u128)prime << 96) / mid : mid * mid <= (u128)prime << 64;
    if (small) lo = mid; else hi = mid;
  }
  return (uint32_t)lo;
}

static void sha256(Bytes m, u8 out[32]) {
  static uint32_t k[64], first[8];
  for (unsigned p = 2, n = 0; n < 64; p++) {
    unsigned d = 2;
    while (d * d <= p && p % d) d++;
    if (d * d <= p) continue;
    if (n < 8) first[n] = root_bits(p, 0);
    k[n++] = root_bits(p, 1);
  }
  uint32_t h[8], w[64];
  memcpy(h, first, sizeof h);
  u64 bits = 8 * m.n;
  put1(&m, 0x80);
  while (m.n % 64 != 56) put1(&m, 0);
  for (int i = 56; i >= 0; i -= 8) put1(&m, (u8)(bits >> i));
#define R(x, n) ((x) >> (n) | (x) << (32 - (n)))
  for (u64 at = 0; at < m.n; at += 64) {
    for (int i = 0; i < 16; i++) w[i] = (uint32_t)m.at[at + 4 * i] << 24 | m.at[at + 4 * i + 1] << 16 | m.at[at + 4 * i + 2] << 8 | m.at[at + 4 * i + 3];
    for (int i = 16; i < 64; i++)
      w[i] = w[i - 16] + (R(w[i - 15], 7) ^ R(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] + (R(w[i - 2], 17) ^ R(w[i - 2], 19) ^ w[i - 2] >> 10);
    uint32_t s[8];
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i++) {
      uint32_t t1 = s[7] + (R(s[4], 6) ^ R(s[4], 11) ^ R(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
      uint32_t t2 = (R(s[0], 2) ^ R(s[0], 13) ^ R(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      memmove(s + 1, s, 7 * sizeof *s);
      s[4] += t1, s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) h[i] += s[i];
  }
#undef R
  for (int i = 0; i < 32; i++) out[i] = (u8)(h[i / 4] >> (24 - 8 * (i % 4)));
}

static u64 derived(const char *label, const u8 *p, u64 n, int bytes) {
  Bytes b = {0};
  u8 sum[32];
  put(&b, (const u8 *)label, strlen(label));
  put(&b, p, n);
  sha256(b, sum);
  u64 v = word(sum, bytes);
  return v ? v : 1;
}

static u64 seed_of(Bytes secret) { return secret.n ? derived("summarycache seed 1", secret.at, secret.n, 8) : 0; }
static u64 tag_of(u64 seed) {
  Bytes b = {0};
  put_fixed(&b, seed, 8);
  return seed ? derived("summarycache seed tag 1", b.at, 8, 4) : 0;
}

static u64 mix(u64 x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static u64 high(u64 a, u64 b) { return (u64)((u128)a * b >> 64); }

static List positions(u64 m, int k, u64 h) {
  List l = {0};
  for (u64 i = 0, d = mix(h + GAMMA) | 1; i < (u64)k; i++) {
    u64 at = high(h + i * d, m), j = 0;
    while (j < l.n && l.at[j] != at) j++;
    if (j == l.n) push(&l, at); // one that comes twice counts once
  }
  return l;
}

// ---- Sets

static List complement(List l, u64 m) {
  List out = {0};
  for (u64 p = 0, i = 0; p < m; p++)
    if (i < l.n && l.at[i] == p) i++;
    else push(&out, p);
  return out;
}

static void admit(Bytes code, u64 m, u64 x) { // C 1
  if (m > UINT64_C(1) << 44 || x > m) bad("corrupt");
  if (least(x, m - x) > 8 * (code.n + 8)) bad("truncated");
  if (least(x, m - x) == 0 && code.n) bad("corrupt");
}

static int method_for(u64 m, u64 x) { // C 1
  u64 y = least(x, m - x);
  return y && y * (len(m / y) + 1) >= 8192;
}

// ---- The adaptive method: C 2

typedef struct {
  u64 low, width; // the lowest 64 bits of low
  Bytes out;      // and what is above them
  int reading;
  Bytes code;
  u64 at, target; // of the reader: next byte, and the code's number less low
} Interval;

static void carry(Interval *v) {
  for (u64 i = v->out.n; ++v->out.at[--i] == 0;) {}
}

static u64 next_byte(Interval *v) { return v->at < v->code.n ? v->code.at[v->at++] : (v->at++, 0); }

static Interval interval(const Bytes *code) {
  Interval v = {.width = ~UINT64_C(0)};
  if (!code) return v;
  v.reading = 1, v.code = *code;
  for (int i = 0; i < 8; i++) v.target = v.target << 8 | next_byte(&v);
  if (v.target >= v.width) bad("corrupt");
  return v;
}

static void narrow(Interval *v, u64 from, u64 width) {
  v->low += from;
  if (v->low < from) carry(v);
  v->width = width, v->target -= from;
  while (v->width < UINT64_C(1) << 32) {
    for (int i = 56; i >= 32; i -= 8) put1(&v->out, (u8)(v->low >> i));
    v->low <<= 32, v->width <<= 32;
    if (!v->reading) continue;
    if (v->out.n > v->code.n + 4) bad("truncated");
    for (int i = 0; i < 4; i++) v->target = v->target << 8 | next_byte(v);
  }
}

static int decide(Interval *v, u64 zero, int bit) {
  u64 split = high(v->width, zero);
  if (v->reading) bit = v->target >= split;
  if (bit) narrow(v, split, v->width - split);
  else narrow(v, 0, split);
  return bit;
}

static u64 uniform(Interval *v, int n, u64 value) {
  for (u64 found = 0;;) {
    int b = n < 16 ? n : 16;
    u64 w = v->width >> b, u = value >> (n - b) & ((UINT64_C(1) << b) - 1);
    if (v->reading && (u = v->target / w) >> b) bad("corrupt");
    narrow(v, u * w, w);
    found = found << b | u;
    if ((n -= b) == 0) return found;
  }
}

static Bytes end_interval(Interval *v) {
  for (int n = 0;; n++) {
    u128 unit = (u128)1 << (64 - 8 * n), q = (v->low + unit - 1) / unit;
    if (q * unit >= (u128)v->low + v->width) continue;
    if (q >> (8 * n)) carry(v);
    for (int i = 8 * n - 8; i >= 0; i -= 8) put1(&v->out, (u8)(q >> i));
    return v->out;
  }
}

// adapt writes the set, or reads one of x positions if v reads. l is the set, or becomes it.
static void adapt(Interval *v, u64 m, u64 x, List *l) {
  u64 y = least(x, m - x);
  if (8 * y >= m) { // C 2.3
    for (u64 p = 0, ones = x, i = 0, z = 0; p < m; p++) {
      u64 left = m - p;
      if (p % 64 == 0) {
        if (ones == 0) return;
        if (ones == left) {
          for (; v->reading && p < m; p++) push(l, p);
          return;
        }
        z = (u64)(((u128)(left - ones) << 64) / left);
        if (z < UINT64_C(1) << 32) z = UINT64_C(1) << 32;
      }
      int bit = decide(v, z, !v->reading && i < l->n && l->at[i] == p);
      if (bit ? ones == 0 : ones == left) bad("corrupt");
      if (bit && v->reading) push(l, p);
      ones -= bit, i += bit;
    }
    return;
  }
  List members = v->reading ? (List){0} : x <= m - x ? *l : complement(*l, m);
  u64 r[64] = {(u64)(((u128)(m - y) << 64) / m)}; // C 2.4
  int top = 0, floor = 0;
  for (; r[top] >= UINT64_C(1) << 62; top++) {
    floor += r[top] > -(UINT64_C(1) << 59);
    r[top + 1] = high(r[top], r[top]);
  }
  for (u64 i = 0, at = 0; i < y; i++) {
    u64 gap = v->reading ? 0 : members.at[i] - at, found = 0;
    for (; decide(v, -r[top], gap - found >= UINT64_C(1) << top); found += UINT64_C(1) << top)
      if (found > m) bad("corrupt");
    gap -= v->reading ? 0 : found;
    for (int j = top - 1; j >= floor; j--)
      found += (u64)decide(v, (u64)(((u128)1 << 127) / ((UINT64_C(1) << 63) + (r[j] >> 1))), gap >> j & 1) << j;
    at += found + uniform(v, floor, gap & ((UINT64_C(1) << floor) - 1));
    if (at >= m) bad("corrupt");
    if (v->reading) push(&members, at);
    at++;
  }
  if (v->reading) *l = x <= m - x ? members : complement(members, m);
}

static Bytes write_adaptive(u64 m, List l) {
  Interval v = interval(NULL);
  if (l.n && l.n < m) adapt(&v, m, l.n, &l);
  return end_interval(&v);
}

static List next_set(Interval *v, u64 m, u64 x) {
  List l = {0};
  if (x == 0 || x == m) return x ? complement(l, m) : l;
  adapt(v, m, x, &l);
  return l;
}

static void ended(Interval *v) {
  Bytes same = end_interval(v);
  if (v->code.n < same.n) bad("truncated");
  if (v->code.n > same.n || (same.n && memcmp(v->code.at, same.at, same.n))) bad("corrupt");
}

static List read_adaptive(Bytes code, u64 m, u64 x) {
  admit(code, m, x);
  Interval v = interval(&code);
  List l = next_set(&v, m, x);
  ended(&v);
  return l;
}

// ---- The block method: C 3

typedef struct { u64 base; u128 weight; int raw; u64 f; } Symbol;
typedef struct {
  int log, n, blocks; // blocks: whether symbols are these, and not gaps
  Symbol s[256];
  u64 jump;            // J
  uint16_t owner[4096]; // by state
  uint16_t place[4096]; // the state's number among its symbol's, plus the symbol's frequency
  uint16_t first[256];  // where the symbol's states begin in list
  uint16_t list[4096];
} Model;

static u64 choose(int n, int c) {
  u64 v = 1;
  for (int i = 1; i <= c; i++) v = v * (n - c + i) / i;
  return v;
}

static uint16_t rank16[1 << 16], by_rank16[1 << 16];

static int ones_of(u64 v) {
  int n = 0;
  for (; v; v &= v - 1) n++;
  return n;
}

static void ranks(void) {
  if (rank16[1]) return;
  u64 next[18] = {0};
  for (int c = 0; c <= 16; c++) next[c + 1] = next[c] + choose(16, c);
  for (u64 v = 0; v < 1 << 16; v++) {
    u64 rank = next[ones_of(v)]++;
    by_rank16[rank] = (uint16_t)v;
    rank16[v] = (uint16_t)rank;
  }
}

static void model_of(Model *mod, u64 m, u64 y) {
  memset(mod, 0, sizeof *mod);
  ranks();
  mod->blocks = 18 * y >= m;
  u64 r = (u64)(((u128)(m - y) << 64) / m);
  if (mod->blocks) { // C 3.4
    mod->log = 12;
    u128 left = (u128)1 << 64;
    for (int n = 0; n < 4; n++) r = high(r, r);
    u64 q = r, o = 2 * y == m ? ~UINT64_C(0) : (u64)(((u128)y << 64) / (m - y)), rank = 0;
    for (int c = 0; c <= 16; c++, q = high(q, o)) {
      u64 count = choose(16, c);
      for (int j = len(count) - 1; j >= 0; j--) {
        if (!(count >> j & 1)) continue;
        u128 weight = (u128)q << j;
        if (weight >> 49) {
          mod->s[mod->n++] = (Symbol){rank, weight, j, 0};
          left -= weight;
        }
        rank += UINT64_C(1) << j;
      }
    }
    mod->s[mod->n++] = (Symbol){0, left, 16, 0};
  } else { // C 3.5
    mod->log = 11;
    int raw = 0;
    u64 left = ~UINT64_C(0), base = 0;
    for (; high(r, r) >= UINT64_C(7) << 61; raw++) r = high(r, r);
    for (; left >= UINT64_C(1) << 57; base += UINT64_C(1) << raw) {
      u64 rest = high(left, r);
      mod->s[mod->n++] = (Symbol){base, left - rest, raw, 0};
      left = rest;
    }
    mod->s[mod->n++] = (Symbol){mod->jump = base, left, 0, 0};
  }
  u64 L = UINT64_C(1) << mod->log, sum = 0; // C 3.2
  for (int i = 0; i < mod->n; i++) {
    u64 f = (u64)((mod->s[i].weight >> (63 - mod->log)) + 1) >> 1;
    sum += mod->s[i].f = f ? f : 1;
  }
  while (sum != L) {
    int best = -1;
    u128 by = 0;
    for (int i = 0; i < mod->n; i++) {
      Symbol s = mod->s[i];
      if (sum > L && s.f == 1) continue;
      u128 v = sum < L ? s.weight / (2 * s.f + 1) : s.weight / (2 * s.f - 1);
      if (best < 0 || (sum < L ? v > by : v < by)) best = i, by = v;
    }
    if (sum < L) mod->s[best].f++, sum++;
    else mod->s[best].f--, sum--;
  }
  for (u64 i = 0, at = 0; i < (u64)mod->n; i++)
    for (u64 j = 0; j < mod->s[i].f; j++, at = (at + 5 * L / 8 + 3) % L) mod->owner[at] = (uint16_t)i;
  for (int i = 1; i < mod->n; i++) mod->first[i] = (uint16_t)(mod->first[i - 1] + mod->s[i - 1].f);
  u64 seen[256] = {0};
  for (u64 s = 0; s < L; s++) {
    int i = mod->owner[s];
    mod->list[mod->first[i] + seen[i]] = (uint16_t)s;
    mod->place[s] = (uint16_t)(mod->s[i].f + seen[i]++);
  }
}

static int symbol_for(const Model *mod, u64 value) { // the escape, if no other has it
  int lo = 0, hi = mod->n - 1;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (value < mod->s[mid].base + (UINT64_C(1) << mod->s[mid].raw)) hi = mid;
    else lo = mid + 1;
  }
  return lo < mod->n - 1 && value >= mod->s[lo].base ? lo : mod->n - 1;
}

typedef struct { Bytes b; u64 v; int have; } BitWriter;

static void put_bits(BitWriter *w, u64 v, int n) { // n at most 40
  w->v |= v << w->have;
  for (w->have += n; w->have >= 8; w->have -= 8, w->v >>= 8) put1(&w->b, (u8)w->v);
}

typedef struct { int raw, shed; u64 value, bits; } Step;

static Bytes write_code(const Model *mod, const u64 *members, u64 count, u64 m) {
  List values = {0}, which = {0};
  u64 L = UINT64_C(1) << mod->log;
  if (mod->blocks) {
    for (u64 at = 0, i = 0; at < (m + 63) / 64 * 64; at += 16) {
      u64 bits = 0;
      for (; i < count && members[i] < at + 16; i++) bits |= UINT64_C(1) << (members[i] - at);
      u64 rank = rank16[bits];
      push(&values, rank);
      push(&which, symbol_for(mod, rank));
    }
  } else {
    for (u64 i = 0, at = 0; i < count; at = members[i++] + 1) {
      u64 gap = members[i] - at;
      for (; gap >= mod->jump; gap -= mod->jump) {
        push(&values, mod->jump);
        push(&which, mod->n - 1);
      }
      push(&values, gap);
      push(&which, symbol_for(mod, gap));
    }
  }
  u64 n = values.n, state[2] = {L, L}, total = 1 + 2 * mod->log; // C 3.3
  Step *steps = memory(n * sizeof *steps);
  for (u64 i = n, turn = 0; i-- > 0; turn ^= 1) {
    const Symbol *s = &mod->s[which.at[i]];
    int shed = 0;
    while (state[turn] >> shed >= 2 * s->f) shed++;
    steps[i] = (Step){s->raw, shed, values.at[i] - s->base, state[turn] & ((UINT64_C(1) << shed) - 1)};
    state[turn] = L + mod->list[mod->first[which.at[i]] + (state[turn] >> shed) - s->f];
    total += s->raw + shed;
  }
  BitWriter w = {{0}, 0, 0};
  int zeros = (int)((8 - total % 8) % 8);
  put_bits(&w, UINT64_C(1) << zeros, zeros + 1);
  u64 first = (n - 1) % 2; // of the two, the one that coded the first symbol
  put_bits(&w, state[first] - L, mod->log);
  put_bits(&w, state[first ^ 1] - L, mod->log);
  for (u64 i = 0; i < n; i++) {
    put_bits(&w, steps[i].value, steps[i].raw);
    put_bits(&w, steps[i].bits, steps[i].shed);
  }
  return w.b;
}

typedef struct { const u8 *at; u64 n, bit; } BitReader;

static u64 take_bits(BitReader *r, int n) {
  u64 v = 0;
  if (r->bit + n > 8 * r->n) bad("truncated");
  for (int i = 0; i < n; i++, r->bit++) v |= (u64)(r->at[r->bit / 8] >> r->bit % 8 & 1) << i;
  return v;
}

static void read_code(const Model *mod, BitReader r, u64 count, u64 m, List *out) {
  u64 L = UINT64_C(1) << mod->log, found = 0;
  if (r.n == 0 || r.at[0] == 0) bad("corrupt");
  while (!take_bits(&r, 1)) {}
  u64 state[2];
  state[0] = take_bits(&r, mod->log);
  state[1] = take_bits(&r, mod->log);
  for (u64 at = 0, turn = 0; mod->blocks ? at < (m + 63) / 64 * 64 : found < count; turn ^= 1) {
    int i = mod->owner[state[turn]], n = 0;
    u64 value = mod->s[i].base + take_bits(&r, mod->s[i].raw), t = mod->place[state[turn]];
    while (t << n < L) n++;
    state[turn] = (t << n) + take_bits(&r, n) - L;
    if (mod->blocks) {
      if (i == mod->n - 1 && symbol_for(mod, value) != i) bad("corrupt");
      u64 bits = by_rank16[value];
      for (int j = 0; j < 16; j++)
        if (bits >> j & 1) {
          if (at + j >= m || ++found > count) bad("corrupt");
          push(out, at + j);
        }
      at += 16;
    } else {
      at += value;
      if (i < mod->n - 1) {
        if (at >= m) bad("corrupt");
        push(out, at++), found++;
      } else if (at > m) bad("corrupt");
    }
  }
  if (found != count || r.bit != 8 * r.n || state[0] || state[1]) bad("corrupt");
}

static Bytes write_block(u64 m, List l) {
  u64 y = least(l.n, m - l.n);
  if (y == 0) return (Bytes){0};
  if (l.n > m - l.n) l = complement(l, m);
  Model *mod = memory(sizeof *mod);
  model_of(mod, m, y);
  return write_code(mod, l.at, l.n, m);
}

static List read_block(Bytes code, u64 m, u64 x) {
  List l = {0};
  admit(code, m, x);
  u64 y = least(x, m - x);
  if (y == 0) return x ? complement(l, m) : l;
  Model *mod = memory(sizeof *mod);
  model_of(mod, m, y);
  read_code(mod, (BitReader){code.at, code.n, 0}, y, m, &l);
  return x <= m - x ? l : complement(l, m);
}

static Bytes write_set(int method, u64 m, List l) { return method ? write_block(m, l) : write_adaptive(m, l); }
static List read_set(int method, Bytes code, u64 m, u64 x) { return method ? read_block(code, m, x) : read_adaptive(code, m, x); }

// ---- Sections: F 5

static void write_section(Bytes *b, u64 m, List l) {
  Bytes code = write_set(method_for(m, l.n), m, l);
  put_uvarint(b, code.n);
  put_all(b, code);
}

typedef struct { Bytes b; u64 at; } Reader;

static u64 fixed(Reader *r, const char *name, int n) {
  if ((u64)n > r->b.n - r->at) refuse("corrupt", name, r->at);
  r->at += n;
  return word(r->b.at + r->at - n, n);
}

static u64 uvarint(Reader *r, const char *name, u64 low, u64 most, const char *beyond) {
  u64 v = 0;
  for (u64 n = 0; n < 10 && r->at + n < r->b.n; n++) {
    u64 byte = r->b.at[r->at + n];
    if (n == 9 && byte > 1) break;
    v |= (byte & 0x7f) << 7 * n;
    if (byte >= 0x80) continue;
    if ((n && byte == 0) || v < low || v > UINT64_C(1) << 63) break;
    if (v > most) refuse(beyond, name, r->at);
    r->at += n + 1;
    return v;
  }
  refuse("corrupt", name, r->at);
}

static List set(Reader *r, const char *name, u64 length, u64 m, u64 x) {
  section_name = name, section_at = r->at;
  List l = read_set(method_for(m, x), (Bytes){length, length, r->b.at + r->at}, m, x);
  section_name = NULL;
  r->at += length;
  return l;
}

static List section(Reader *r, const char *name, u64 m, u64 x) {
  char sub[64];
  snprintf(sub, sizeof sub, "%s length", name);
  u64 at = r->at, length = uvarint(r, sub, 0, UINT64_C(1) << 63, "corrupt");
  if (length > r->b.n - r->at) refuse("corrupt", sub, at);
  return set(r, name, length, m, x);
}

// ---- Two sets in one code: C 4

static void read_pair(Reader *r, const char *name, u64 m, u64 x, u64 n, u64 y, List out[2]) {
  Bytes code = {r->b.n - r->at, 0, r->b.at + r->at};
  section_name = name, section_at = r->at;
  if (method_for(m, x) || method_for(n, y)) {
    Reader in = {code, 0};
    u64 v = 0, byte = 0x80;
    for (int shift = 0; byte >= 0x80; shift += 7) {
      if (shift > 56 || in.at == code.n) bad("corrupt");
      byte = code.at[in.at++];
      if (shift && byte == 0) bad("corrupt");
      v |= (byte & 0x7f) << shift;
    }
    if (v > code.n - in.at) bad("truncated");
    out[0] = read_set(method_for(m, x), (Bytes){v, 0, code.at + in.at}, m, x);
    out[1] = read_set(method_for(n, y), (Bytes){code.n - in.at - v, 0, code.at + in.at + v}, n, y);
  } else {
    if (least(x, m - x) > 8 * (code.n + 8) || least(y, n - y) > 8 * (code.n + 8)) bad("truncated");
    Interval v = interval(&code);
    out[0] = next_set(&v, m, x);
    out[1] = next_set(&v, n, y);
    ended(&v);
  }
  section_name = NULL;
  r->at = r->b.n;
}

static void write_pair(Bytes *b, u64 m, List x, u64 n, List y) {
  if (method_for(m, x.n) || method_for(n, y.n)) {
    write_section(b, m, x);
    put_all(b, write_set(method_for(n, y.n), n, y));
    return;
  }
  Interval v = interval(NULL);
  if (x.n && x.n < m) adapt(&v, m, x.n, &x);
  if (y.n && y.n < n) adapt(&v, n, y.n, &y);
  put_all(b, end_interval(&v));
}

// ---- Messages: F 4

typedef struct {
  int kind, scheme, k, profile;
  u64 tag, m, epoch, sequence, state, keys, count, state_at, count_at;
  u64 span; // of pieces
  List set;
} Message;

static u64 state_of(const Message *h) { // F 3
  u64 s = mix(h->m + mix(h->k + 256 * (u64)h->scheme + 65536 * h->tag + ((u64)h->profile << 48)));
  for (u64 i = 0; i < h->set.n; i++) s += mix(h->set.at[i] + GAMMA);
  return s;
}

static u64 check_of(const u8 *p, u64 n, u64 seed) { return xxh64(p, n, seed) & 0xffffffff; }

static void preamble(Reader *r) {
  for (u64 i = 0; i < 3; i++)
    if (i >= r->b.n || r->b.at[i] != "SCD"[i]) refuse("corrupt", "magic", 0);
  r->at = 3;
  if (fixed(r, "format version", 1) != 1) refuse("version", "format version", 3);
}

static void geometry(Reader *r, Message *h) {
  u64 at = r->at;
  if ((h->scheme = (int)fixed(r, "scheme", 1)) != 1) refuse(h->scheme ? "version" : "corrupt", "scheme", at);
  h->k = (int)fixed(r, "hashes", 1);
  if (h->k < 1 || h->k > 32) refuse("corrupt", "hashes", at + 1);
  h->profile = (int)fixed(r, "profile", 1);
  h->tag = fixed(r, "seed tag", 4);
  h->m = uvarint(r, "bits", 1, UINT64_C(1) << 44, "too large");
}

static void header(Reader *r, Message *h, int delta) {
  h->kind = (int)fixed(r, "kind", 1);
  if (h->kind > 3) refuse("version", "kind", 4);
  if (!h->kind || (h->kind == 2) != delta) refuse("corrupt", "kind", 4);
  u64 n = fixed(r, "extension length", 1);
  if (n > r->b.n - r->at) refuse("corrupt", "extension", r->at);
  r->at += n;
  if (!delta) geometry(r, h);
  h->epoch = uvarint(r, "epoch", 1, UINT64_C(1) << 63, "corrupt");
  h->sequence = uvarint(r, "sequence", 0, UINT64_C(1) << 63, "corrupt");
  h->state_at = r->at;
  h->state = fixed(r, "state", 8);
  h->keys = uvarint(r, "keys", 0, UINT64_C(1) << 63, "corrupt");
  if (delta) return;
  h->count_at = r->at;
  h->count = uvarint(r, "count", 0, h->m, "corrupt");
  if (h->count > MAX_MEMORY / 8) refuse("too large", "count", h->count_at); // F 6
}

typedef struct { u64 span, length, first; } Pieces;

static Pieces piece_head(Reader *r, const Message *h) {
  Pieces p = {.span = uvarint(r, "span", 1, h->m, "corrupt")};
  u64 at = r->at;
  if ((p.length = uvarint(r, "piece length", 0, MAX_BYTES, "too large")) < 6) refuse("corrupt", "piece length", at);
  u64 want = check_of(r->b.at, r->at, 0);
  at = r->at;
  if (fixed(r, "head checksum", 4) != want) refuse("corrupt", "head checksum", at);
  p.first = r->at;
  return p;
}

// read_piece reads piece i, which begins at r.
static List read_piece(Reader *r, const Message *h, const Pieces *p, u64 i, u64 most) {
  if (p->length > r->b.n - r->at) refuse("corrupt", "piece", r->at);
  u64 start = r->at, end = start + p->length, size = least(p->span, h->m - i * p->span);
  Reader in = {{end, 0, r->b.at}, start};
  if (fixed(&in, "piece", 4) != check_of(in.b.at + in.at, p->length - 4, h->state + i)) refuse("corrupt", "piece", start);
  List l = section(&in, "piece code", size, uvarint(&in, "piece count", 0, least(size, most), "corrupt"));
  for (; in.at < end; in.at++)
    if (in.b.at[in.at]) refuse("corrupt", "padding", in.at);
  for (u64 j = 0; j < l.n; j++) l.at[j] += i * p->span;
  r->at = end;
  return l;
}

static void read_pieces(Reader *r, Message *h) {
  Pieces p = piece_head(r, h);
  h->span = p.span;
  for (u64 i = 0; i < (h->m + p.span - 1) / p.span; i++) {
    List l = read_piece(r, h, &p, i, h->count - h->set.n);
    for (u64 j = 0; j < l.n; j++) push(&h->set, l.at[j]);
  }
  if (h->set.n != h->count) refuse("corrupt", "count", h->count_at);
}

static void check_state(const Message *h) {
  if (state_of(h) != h->state || h->set.n != h->count) refuse("corrupt", "state", h->state_at);
}

// flip returns the filter base with ranks set among its clear positions, and ranks cleared among the others.
static List flip(List base, List sets, List clears) {
  List out = {0};
  u64 i = 0, c = 0, s = 0;
  for (; i < base.n || s < sets.n;) {
    u64 new = s < sets.n ? sets.at[s] + i : UINT64_MAX; // so many set positions are below it
    if (i < base.n && base.at[i] <= new) {
      if (c < clears.n && clears.at[c] == i) c++;
      else push(&out, base.at[i]);
      i++;
    } else {
      push(&out, new);
      s++;
    }
  }
  return out;
}

static List read_changes(Reader *r, const Message *base) { // a bare delta
  u64 at = r->at, counts = fixed(r, "counts", 1), a = counts & 15, b = counts >> 4, zeros = base->m - base->set.n;
  if (a == 15) a += uvarint(r, "positions set", 0, UINT64_C(1) << 44, "corrupt");
  if (b == 15) b += uvarint(r, "positions cleared", 0, UINT64_C(1) << 44, "corrupt");
  if (a > zeros || b > base->set.n) refuse("corrupt", "counts", at);
  List sets[2] = {{0}};
  read_pair(r, "changes", zeros, a, base->set.n, b, sets);
  return flip(base->set, sets[0], sets[1]);
}

static void read_delta(Reader *r, Message *h, const Message *base) {
  u64 step_at = r->at, step = uvarint(r, "sequence step", 0, h->sequence, "corrupt"), state = fixed(r, "base state", 8);
  if (h->epoch != base->epoch || h->sequence - step != base->sequence || state != base->state) refuse("base", "base", step_at);
  h->scheme = base->scheme, h->k = base->k, h->profile = base->profile, h->tag = base->tag, h->m = base->m;
  h->set = read_changes(r, base);
  h->count = h->set.n;
  int same = h->set.n == base->set.n && (!h->set.n || !memcmp(h->set.at, base->set.at, h->set.n * sizeof *h->set.at));
  if ((step == 0 && !same) || (same && state != h->state)) refuse("corrupt", "sequence step", step_at);
}

// read_message decodes a filter, whole or in pieces, or a delta, if base is not null.
static Message read_message(Bytes data, const Message *base) {
  Message h = {0};
  Reader r = {data, 0};
  preamble(&r);
  if (data.n < 8) refuse("corrupt", "checksum", data.n);
  r.b.n -= 4;
  if (check_of(data.at, r.b.n, 0) != word(data.at + r.b.n, 4)) refuse("corrupt", "checksum", r.b.n);
  header(&r, &h, base != NULL);
  if (base) read_delta(&r, &h, base);
  else if (h.kind == 3) read_pieces(&r, &h);
  else h.set = set(&r, "positions", r.b.n - r.at, h.m, h.count);
  if (!base) check_state(&h); // before what else is wrong behind the positions: F 4
  if (r.at != r.b.n) refuse("corrupt", "end", r.at);
  check_state(&h);
  return h;
}

static Bytes write_header(Message *h) {
  Bytes b = {0};
  put(&b, (const u8 *)"SCD", 3);
  put1(&b, 1), put1(&b, (u8)h->kind), put1(&b, 0);
  if (h->kind != 2) {
    put1(&b, (u8)h->scheme), put1(&b, (u8)h->k), put1(&b, (u8)h->profile);
    put_fixed(&b, h->tag, 4);
    put_uvarint(&b, h->m);
  }
  put_uvarint(&b, h->epoch);
  put_uvarint(&b, h->sequence);
  put_fixed(&b, h->state = state_of(h), 8);
  put_uvarint(&b, h->keys);
  if (h->kind != 2) put_uvarint(&b, h->set.n);
  return b;
}

static Bytes sealed(Bytes b) {
  put_fixed(&b, check_of(b.at, b.n, 0), 4);
  return b;
}

static Bytes write_message(Message *h) {
  Bytes b = write_header(h);
  if (h->kind == 3) {
    u64 span = h->span, n = (h->m + span - 1) / span, longest = 0, i = 0;
    Bytes *parts = memory(n * sizeof *parts);
    for (u64 p = 0; p < n; p++) {
      List l = {0};
      for (; i < h->set.n && h->set.at[i] < (p + 1) * span; i++) push(&l, h->set.at[i] - p * span);
      parts[p] = (Bytes){0};
      put_uvarint(&parts[p], l.n);
      write_section(&parts[p], least(span, h->m - p * span), l);
      if (parts[p].n > longest) longest = parts[p].n;
    }
    put_uvarint(&b, span);
    put_uvarint(&b, 4 + longest);
    b = sealed(b);
    for (u64 p = 0; p < n; p++) {
      while (parts[p].n < longest) put1(&parts[p], 0);
      put_fixed(&b, check_of(parts[p].at, longest, h->state + p), 4);
      put_all(&b, parts[p]);
    }
    return sealed(b);
  }
  put_all(&b, write_set(method_for(h->m, h->set.n), h->m, h->set));
  return sealed(b);
}

// diff finds what flip takes.
static void diff(List base, List target, List *sets, List *clears) {
  for (u64 i = 0, j = 0; i < base.n || j < target.n;) {
    if (j == target.n || (i < base.n && base.at[i] < target.at[j])) push(clears, i++);
    else if (i == base.n || target.at[j] < base.at[i]) push(sets, target.at[j++] - i);
    else i++, j++;
  }
}

static Bytes write_delta(const char *form, const Message *base, Message *target) {
  List sets = {0}, clears = {0};
  diff(base->set, target->set, &sets, &clears);
  Bytes b = {0};
  if (strcmp(form, "bare")) {
    target->kind = 2;
    b = write_header(target);
    put_uvarint(&b, target->sequence - base->sequence);
    put_fixed(&b, base->state, 8);
  }
  put1(&b, (u8)(least(sets.n, 15) | least(clears.n, 15) << 4));
  if (sets.n >= 15) put_uvarint(&b, sets.n - 15);
  if (clears.n >= 15) put_uvarint(&b, clears.n - 15);
  write_pair(&b, base->m - base->set.n, sets, base->set.n, clears);
  return strcmp(form, "bare") ? sealed(b) : b;
}

static int ask(Bytes data, u64 position) { // looks at the head and at one piece
  Reader r = {data, 0};
  Message h = {0};
  preamble(&r);
  header(&r, &h, 0);
  if (h.kind != 3) refuse("corrupt", "kind", 4);
  Pieces p = piece_head(&r, &h);
  u64 i = position / p.span, at = p.first + i * p.length;
  if (at > data.n) refuse("corrupt", "piece", at);
  r.at = at;
  List l = read_piece(&r, &h, &p, i, h.count);
  for (u64 j = 0; j < l.n; j++)
    if (l.at[j] == position) return 1;
  return 0;
}

// ---- Lines

static const char *const kinds[] = {"", "filter", "delta", "pieces"};

static char *token(void) {
  char *t = strtok(NULL, " \n");
  if (!t) refuse("corrupt", "line", 0);
  return t;
}

static u64 number(void) { return strtoull(token(), NULL, 10); }

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static Bytes hex(void) {
  const char *t = token();
  Bytes b = {0};
  for (; digit(t[0]) >= 0 && digit(t[1]) >= 0; t += 2) put1(&b, (u8)(digit(t[0]) << 4 | digit(t[1])));
  return b;
}

static List list(void) {
  char *t = token();
  List l = {0};
  while (*t && *t != '-') {
    push(&l, strtoull(t, &t, 10));
    t += *t == ',';
  }
  return l;
}

static void print_hex(Bytes b) {
  for (u64 i = 0; i < b.n; i++) printf("%02x", b.at[i]);
  puts(b.n ? "" : "-");
}

static void print_list(List l) {
  for (u64 i = 0; i < l.n; i++) printf("%s%" PRIu64, i ? "," : "", l.at[i]);
  puts(l.n ? "" : "-");
}

static void answer(char *line) {
  const char *what = strtok(line, " \n");
  if (!what) refuse("corrupt", "line", 0);
  if (!strcmp(what, "seed")) {
    u64 seed = seed_of(hex());
    printf("%" PRIu64 " %" PRIu64 "\n", seed, tag_of(seed));
  } else if (!strcmp(what, "key")) {
    u64 seed = number();
    Bytes b = hex();
    printf("%" PRIu64 "\n", xxh64(b.at, b.n, seed));
  } else if (!strcmp(what, "positions")) {
    u64 m = number();
    int k = (int)number();
    print_list(positions(m, k, number()));
  } else if (!strcmp(what, "code")) {
    int method = (int)number();
    u64 m = number();
    print_hex(write_set(method, m, list()));
  } else if (!strcmp(what, "decode")) {
    int method = (int)number();
    u64 m = number(), x = number();
    print_list(read_set(method, hex(), m, x));
  } else if (!strcmp(what, "read") || !strcmp(what, "apply")) {
    Bytes data = hex();
    Message base, h;
    if (*what == 'a') base = read_message(hex(), NULL);
    h = read_message(data, *what == 'a' ? &base : NULL);
    printf("%s %d %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", kinds[h.kind], h.scheme, h.k, h.profile, h.tag,
           h.m, h.epoch, h.sequence, h.state, h.keys, h.span);
    print_list(h.set);
  } else if (!strcmp(what, "write")) {
    Message h = {0};
    const char *kind = token();
    while (h.kind < 3 && strcmp(kind, kinds[h.kind])) h.kind++;
    h.scheme = (int)number(), h.k = (int)number(), h.profile = (int)number(), h.tag = number(), h.m = number(), h.epoch = number(), h.sequence = number();
    number(); // the state follows from the rest
    h.keys = number(), h.span = number(), h.set = list();
    print_hex(write_message(&h));
  } else if (!strcmp(what, "diff")) {
    const char *form = token();
    Message base = read_message(hex(), NULL), target = read_message(hex(), NULL);
    print_hex(write_delta(form, &base, &target));
  } else if (!strcmp(what, "bare")) {
    Reader r = {hex(), 0};
    Message base = read_message(hex(), NULL);
    print_list(read_changes(&r, &base));
  } else if (!strcmp(what, "ask")) {
    Bytes data = hex();
    printf("%d\n", ask(data, number()));
  } else {
    refuse("corrupt", "line", 0);
  }
}

int main(void) {
  static char *line;
  static size_t room, n;
  for (int c; (c = getchar()) != EOF;) {
    if (n + 1 >= room && !(line = realloc(line, room = 2 * room + 4096))) return 3;
    line[n++] = (char)c;
    if (c != '\n') continue;
    line[n] = 0, n = 0;
    section_name = NULL;
    if (setjmp(refusal) == 0) answer(line);
    else printf("refused %s %" PRIu64 " %s\n", error, offset, field);
    fflush(stdout);
    forget();
  }
  free(line);
  return 0;
}
