package squid_test

import (
	"bytes"
	"fmt"

	"github.com/summarycache/summarycache/digest/squid"
)

// A digest as a Squid fetches it, and lookups in it.
func Example() {
	b, err := squid.NewBuilder(1000, 16)
	if err != nil {
		panic(err)
	}
	b.Add(squid.KeyOf(squid.Get, "http://example.com/", ""))
	b.Mirror() // Squid up to 7.6 damages the digests that it fetches
	made, err := b.Digest()
	if err != nil {
		panic(err)
	}
	var message bytes.Buffer // to be served as squid.ContentType at squid.Path
	if _, err := made.WriteTo(&message); err != nil {
		panic(err)
	}

	d, err := squid.Read(&message, int64(message.Len()), squid.Limits{})
	if err != nil {
		panic(err)
	}
	fmt.Println(d.MayContain(squid.KeyOf(squid.Get, "http://example.com/", "")))
	fmt.Println(d.MayContain(squid.KeyOf(squid.Get, "http://example.com/other", "")))
	// Output:
	// true
	// false
}
