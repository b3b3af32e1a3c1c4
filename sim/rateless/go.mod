module github.com/summarycache/summarycache/sim/rateless

go 1.26.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/summarycache/summarycache v0.0.0
)

replace github.com/summarycache/summarycache => ../..
