package bodies

import "iter"

// A Store keeps responses under their identities. It is bounded, and may drop any of them at any time.
// It is safe for concurrent use.
type Store interface {
	// Get returns the object under a key; finding it counts as a use. Peek does not count.
	Get(key string) (Object, bool)
	Peek(key string) (Object, bool)

	// Describe reads the description of an object, and Open opens its body. about is what Describe
	// returned for the object, or nil: a body that was read with the description is not read again. The
	// errors are [ErrGone] if the object left the store meanwhile, and one that wraps
	// [ErrCorrupt] if it differs from what was stored or can't be read: then it was removed.
	Describe(o Object) (about Described, err error)
	Open(o Object, about Described) (View, error)

	// Create begins an object. size is the length of the body in bytes, -1 if it is unknown. The error
	// is [ErrTooLarge] if the store takes no object of this length.
	Create(key string, size int64) (*Stream, error)
	// Update replaces the description of an object's body and returns the new object, which is marked
	// as a copy if the old one is. It returns [ErrGone] if o is no longer in the store. After any
	// other error o is removed.
	Update(o Object, m Meta) (Object, error)
	// Delete removes the object under a key, and DeleteObject removes o if it is still the object under
	// its key. They report whether they did. Opening the store again does not bring it back.
	Delete(key string) bool
	DeleteObject(o Object) bool

	// Labelled iterates over the objects with a label, Listed over those that are listed, and Keys over
	// all keys, in no order. They may miss what is stored or removed meanwhile, but Listed misses no
	// object for which Hooks.Listed was called before.
	Labelled(label string) iter.Seq[Object]
	Listed() iter.Seq[Object]
	Keys() iter.Seq[string]

	// Close ends the use of the store. Views stay readable.
	Close() error
}
