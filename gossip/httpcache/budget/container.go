package budget

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// container returns the least limit of the control groups that the process is in, in bytes, for either
// version of Linux's control groups; [math.MaxInt64] = there is none. A limit of a group above
// counts as well. Within a container the path of a group may be one outside, of which only the end,
// or nothing, is there: then the groups that are there count.
func container(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(own)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case controllers == "":
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group = path.Join("/", group); ; group = path.Dir(group) { // each round has a shorter path
			if text, err := fs.ReadFile(root, path.Join(mount, group, file)); err == nil {
				// "max" is none
				if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
					limit = min(limit, n)
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}
