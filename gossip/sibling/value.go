package sibling

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Codec encodes and decodes values of a type. Both functions are needed; the zero Codec is JSON's.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

func (c *Codec[T]) orJSON() {
	if c.Encode == nil {
		c.Encode = func(v T) ([]byte, error) { return json.Marshal(v) }
	}
	if c.Decode == nil {
		c.Decode = func(b []byte) (v T, err error) {
			err = json.Unmarshal(b, &v)
			return v, err
		}
	}
}

// Get is [Cache.Get] for values of any type. Each caller gets its own copy.
func Get[T any](ctx context.Context, c *Cache, identity string, codec Codec[T], load func(context.Context) (value T, expires time.Time, err error)) (value T, err error) {
	codec.orJSON()
	b, err := c.Get(ctx, identity, func(ctx context.Context) ([]byte, time.Time, error) {
		v, expires, err := load(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		b, err := codec.Encode(v)
		return b, expires, err
	})
	if err != nil {
		return value, err
	}
	if value, err = codec.Decode(b); err != nil {
		err = fmt.Errorf("sibling: decoding a value: %w", err)
	}
	return value, err
}

// Set is [Cache.Set] for values of any type.
func Set[T any](ctx context.Context, c *Cache, identity string, codec Codec[T], value T, expires time.Time) error {
	codec.orJSON()
	b, err := codec.Encode(value)
	if err != nil {
		return err
	}
	return c.Set(ctx, identity, b, expires)
}
