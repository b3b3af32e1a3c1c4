module github.com/summarycache/summarycache/sim/libraries

go 1.26.0

require (
	github.com/FastFilter/xorfilter v0.4.2-0.20260120015552-4e5a4d9df65a
	github.com/RoaringBitmap/roaring/v2 v2.30.0
	github.com/summarycache/summarycache v0.0.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/mschoch/smat v0.2.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/summarycache/summarycache => ../..
