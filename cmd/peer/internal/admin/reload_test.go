package admin

import "testing"

// TestReloadText: of a setting of several lines, only those that differ are shown.
func TestReloadText(t *testing.T) {
	for want, changed := range map[string][]Change{
		"Nothing differs from what runs.\n":                   {},
		"drain:\n- 1s\n+ 2s\n":                                {{"drain", "1s", "2s"}},
		"cert: /a, with other contents\n":                     {{"cert", "/a", "/a"}},
		"join:\n- b\n+ c\n":                                   {{"join", "a\nb\n", "a\nc\n"}},
		"join:\n+ c\n+ d\n":                                   {{"join", "a", "a\nc\nd"}},
		"join:\n- a\n":                                        {{"join", "a", ""}},
		"join:\nthe same lines in another order\n":            {{"join", "a\nb", "b\na"}},
		"drain:\n- 1s\n+ 2s\ncert: /a, with other contents\n": {{"drain", "1s", "2s"}, {"cert", "/a", "/a"}},
	} {
		if got := ReloadText(ReloadReport{changed}); got != want {
			t.Errorf("ReloadText(%v) = %q, want %q", changed, got, want)
		}
	}
}
