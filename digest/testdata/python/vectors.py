"""Runs reader.py on the vectors, and on frozen messages: python3 vectors.py FILE [DIRECTORY...].

Exits with 0 if it agrees with all."""
import json
import os
import sys

from reader import Refused, ask, decode, positions, seed_of, tag_of, xxh64

LONG = {"filter": 30_000, "pieces": 2_000, "delta": 30_000, "plain": 30_000}  # bytes: longer frozen messages take this reader seconds

def main(path, *frozen):
    with open(path) as f:
        v = json.load(f)
    counts = {}

    def check(what, got, want):
        counts[what] = counts.get(what, 0) + 1
        if got != want:
            sys.exit(f"{what}: {got}, want {want}")

    for s in v["Seeds"]:
        seed = seed_of(s["Secret"].encode())
        check("seeds", (seed, tag_of(seed)), (int(s["Seed"], 16), int(s["Tag"], 16)))
    for k in v["Keys"]:
        check("keys", xxh64(k["Identity"].encode(), int(k["Seed"], 16)), int(k["Key"], 16))
    for p in v["Positions"]:
        if p["Scheme"] == "double":
            check("positions", positions(p["Bits"], p["Hashes"], int(p["Key"], 16)), p["Positions"])
    filters = {}
    for f in v["Filters"]:
        if f["Scheme"] != "double":
            continue
        h, members = filters[f["Name"]] = decode(bytes.fromhex(f["Hex"]))
        want = sorted({p for k in f["Keys"] for p in positions(f["Bits"], f["Hashes"], int(k, 16))})
        check("filters", (members, h["state"], h["epoch"], h["sequence"], h["keys"], h["tag"]),
              (want, int(f["State"], 16), f["Epoch"], f["Sequence"], len(f["Keys"]), tag_of(int(f["Seed"], 16))))
    for p in v["Pieces"]:
        if p["Filter"] not in filters:
            continue
        (h, members), data = decode(bytes.fromhex(p["Hex"])), bytes.fromhex(p["Hex"])
        want, positions_of = filters[p["Filter"]]
        check("pieces", (members, h["state"], h["keys"]), (positions_of, want["state"], want["keys"]))
        for position in range(0, h["bits"], h["bits"] // 50 + 1):
            check("questions", ask(lambda at, n: data[at:at + n], position), position in members)
        for position in members:
            check("questions", ask(lambda at, n: data[at:at + n], position), True)
    for d in v["Deltas"]:
        for form in ("Hex", "Plain"):
            h, members = decode(bytes.fromhex(d[form]), filters[d["Base"]])
            target, want = filters[d["Target"]]
            check("deltas", (members, h["state"], h["sequence"], h["keys"]),
                  (want, target["state"], target["sequence"], target["keys"]))
    for bad in v["Invalid"]:
        if 2 <= bytes.fromhex(bad["Hex"] + 6 * "00")[5] <= 5:
            continue  # another scheme
        try:
            got = decode(bytes.fromhex(bad["Hex"]), filters[bad["Base"]] if bad["Base"] else None)
        except Refused as refused:
            got = refused.args
        check("refusals", got, (bad["Error"], bad["Field"], bad["Offset"]))
    for directory in frozen:
        message = lambda name: open(os.path.join(directory, name + ".bin"), "rb").read()
        with open(os.path.join(directory, "frozen.json")) as f:
            for m in json.load(f):
                if m["Scheme"] == 1 and m["Kind"] == "pieces" and m["Last"]:
                    data, key = message(m["Name"]), xxh64(b"object %d" % m["First"], seed_of(m["Secret"].encode()))
                    for p in positions(m["Bits"], m["Hashes"], key):
                        check("questions", ask(lambda at, n: data[at:at + n], p), True)
                if m["Scheme"] != 1 or len(message(m["Name"])) > LONG.get(m["Kind"], 0):
                    continue
                base = decode(message(m["Base"])) if m["Base"] else None
                h, _ = decode(message(m["Name"]), base)  # which compares positions with the state
                check("frozen", (f"{h['state']:016x}", h["sequence"], h["keys"]), (m["State"], m["Sequence"], m["Last"] - m["First"]))
    print("agrees:", ", ".join(f"{n} {what}" for what, n in counts.items()))

if __name__ == "__main__":
    main(*sys.argv[1:])
