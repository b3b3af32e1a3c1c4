package diskstore

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// lockOrder is the order of the locks in the comment of type segments, by the names of the values that have them.
var lockOrder = []string{"tidying", "appending", "room", "mu", "trust"}

// TestLocks: a store has these locks and no others, and no function takes one while it, or a function that called it, holds
// a later one. Functions are told apart by their names; what only a closure or a hook does while it runs is that of the function around it.
func TestLocks(t *testing.T) {
	var found []string
	for _, typ := range []any{store{}, segments{}, segment{}, object{}, file{}, writer{}, view{}, openFile{}, openFiles{}, hotSet{}, copies{}, labels{}, expiries{}, trust{}, room{}, blocks{}, span{}} {
		v := reflect.TypeOf(typ)
		for i := range v.NumField() {
			switch v.Field(i).Type {
			case reflect.TypeFor[sync.Mutex](), reflect.TypeFor[sync.RWMutex]():
				name := v.Field(i).Name
				if v.Name() == "trust" || v.Name() == "room" {
					name = v.Name()
				}
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(lockOrder)); !slices.Equal(found, want) {
		t.Fatalf("locks are %q, want %q", found, want)
	}
	sources, err := filepath.Glob("*.go")
	check(t, err)
	functions := map[string][]*ast.FuncDecl{}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		check(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				functions[fn.Name.Name] = append(functions[fn.Name.Name], fn)
			}
		}
	}
	takes := map[string]map[string]bool{} // the locks that functions of this name take
	for more := true; more; {             // it ends: each round but the last adds a lock to a function
		more = false
		for name, all := range functions {
			for _, fn := range all {
				walkLocks(fn, takes, func(_ []string, lock string) {
					if takes[name] == nil {
						takes[name] = map[string]bool{}
					}
					more = more || !takes[name][lock]
					takes[name][lock] = true
				})
			}
		}
	}
	pairs := 0
	for name, all := range functions {
		for _, fn := range all {
			walkLocks(fn, takes, func(held []string, lock string) {
				for _, h := range held {
					if pairs++; slices.Index(lockOrder, h) >= slices.Index(lockOrder, lock) {
						t.Errorf("%s takes %s while %s is held", name, lock, h)
					}
				}
			})
		}
	}
	if pairs < 5 {
		t.Errorf("%d locks were taken while another was held: nothing is found any more", pairs)
	}
}

// lockOf returns the lock that a call of Lock or Unlock concerns, and whether it takes it.
func lockOf(call *ast.CallExpr) (lock string, take, is bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Lock", "RLock", "TryLock", "Unlock", "RUnlock"}, sel.Sel.Name) || len(call.Args) > 0 {
		return "", false, false
	}
	x, ok := sel.X.(*ast.SelectorExpr)
	if !ok {
		return "", false, false
	}
	lock = x.Sel.Name
	if id, ok := x.X.(*ast.Ident); ok && id.Name == "t" && lock == "mu" {
		lock = "trust"
	}
	return lock, !strings.HasSuffix(sel.Sel.Name, "nlock"), true
}

// walkLocks calls do for each lock that a function takes, itself or by what it calls, with those that it holds then.
func walkLocks(fn *ast.FuncDecl, takes map[string]map[string]bool, do func(held []string, lock string)) {
	var held []string
	deferred := map[*ast.CallExpr]bool{}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			deferred[n.Call] = true
		case *ast.GoStmt:
			return false
		case *ast.CallExpr:
			lock, take, is := lockOf(n)
			switch {
			case is && deferred[n]: // it is held to the end
			case is && take:
				do(held, lock)
				held = append(slices.Clone(held), lock)
			case is:
				held = slices.DeleteFunc(slices.Clone(held), func(h string) bool { return h == lock })
			default:
				name := ""
				switch f := n.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				if foreign[name] {
					return true
				}
				for _, lock := range slices.Sorted(maps.Keys(takes[name])) {
					do(held, lock)
				}
			}
		}
		return true
	})
}

// foreign are methods of other packages that have the names of functions here which take locks.
var foreign = map[string]bool{"Close": true, "Get": true, "Open": true, "Create": true, "Remove": true, "Write": true, "append": true, "Put": true, "close": true, "Listed": true}

// A store whose directory is removed makes it again within seconds, keeps others out, and what it stores then is there after a
// restart. One whose directory is another process's says so.
func TestDirectoryRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := Options{Dir: dir, MaxBytes: 8 << 20}
	one, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	limit := func() string {
		one.(*store).measure(false)
		return one.Stats().RoomLimit
	}
	for _, again := range []bool{false, true} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if again {
			os.Mkdir(dir, 0o700)
		}
		if got := limit(); got != "" {
			t.Errorf("removed: %q", got)
		}
		if other, err := Open(o); !errors.Is(err, ErrLocked) {
			t.Errorf("another one: %v, %v, want %v", other, err, ErrLocked)
		}
		for i := range 10 {
			if _, err := keep(one.(*store), fmt.Sprint(i), body(1, 1000+i%2*200_000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if one, err = Open(o); err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if got := one.Stats(); got.Objects != 10 || got.Corrupt != 0 {
		t.Errorf("after a restart: %+v", got)
	}
	os.RemoveAll(dir)
	other, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got := limit(); !strings.Contains(got, "another process's") {
		t.Errorf("replaced: %q", got)
	}
	if got := other.Stats().RoomLimit; got != "" {
		t.Errorf("the other one: %q", got)
	}
}
