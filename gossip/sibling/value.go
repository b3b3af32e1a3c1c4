package sibling

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Codec encodes and decodes values of a type. Both functions are needed; the zero Codec is JSON.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

func (c Codec[T]) encode(v T) ([]byte, error) {
	if c.Encode == nil {
		return json.Marshal(v)
	}
	return c.Encode(v)
}

func (c Codec[T]) decode(b []byte) (v T, err error) {
	if c.Decode == nil {
		err = json.Unmarshal(b, &v)
	} else {
		v, err = c.Decode(b)
	}
	if err != nil {
		return v, fmt.Errorf("sibling: decoding a value: %w", err)
	}
	return v, nil
}

// Get is [Cache.Get] for values of any type. Each caller gets its own copy.
func Get[T any](ctx context.Context, c *Cache, identity string, codec Codec[T], load func(context.Context) (value T, expires time.Time, err error)) (value T, err error) {
	b, err := c.Get(ctx, identity, func(ctx context.Context) ([]byte, time.Time, error) {
		v, expires, err := load(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		b, err := codec.encode(v)
		return b, expires, err
	})
	if err != nil {
		return value, err
	}
	return codec.decode(b)
}

// Set is [Cache.Set] for values of any type.
func Set[T any](ctx context.Context, c *Cache, identity string, codec Codec[T], value T, expires time.Time) error {
	b, err := codec.encode(value)
	if err != nil {
		return err
	}
	return c.Set(ctx, identity, b, expires)
}
