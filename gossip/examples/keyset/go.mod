module github.com/summarycache/summarycache/gossip/examples/keyset

go 1.26.0

require github.com/summarycache/summarycache v0.0.0

require github.com/cespare/xxhash/v2 v2.3.0 // indirect

replace github.com/summarycache/summarycache => ../../..
