package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An item is a statement of a document.
type item struct {
	document, section string
	kind              string // table, figure, formula, algorithm, experiment, conjecture, remark or application
	what              string
	state             string   // built, reproduced, holds, refuted or left
	places            []string // in this project: see placeIsThere
	note              string
	quote             string // some words of the document where the item is
}

// documentItems reads DOCUMENTS.md, and what each item is in its document's words from testdata/quotes.txt.
func documentItems(t *testing.T) (items []item) {
	t.Helper()
	page, err := os.ReadFile("DOCUMENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	words, err := os.ReadFile("testdata/quotes.txt")
	if err != nil {
		t.Fatal(err)
	}
	quotes := map[string]string{} // by the document's first word, section and item
	for line := range strings.Lines(string(words)) {
		if at := strings.LastIndex(line, "\t"); at > 0 {
			quotes[line[:at]] = strings.TrimSpace(line[at:])
		}
	}
	for _, table := range readResults(t, string(page))[""] {
		document, _, _ := strings.Cut(table.title, ",")
		for _, f := range table.rows {
			if len(f) != 6 {
				t.Fatalf("%s: row %q: want 6 cells", table.title, f)
			}
			i := item{document: table.title, section: f[0], kind: f[1], what: strings.ReplaceAll(f[2], `\|`, "|"), state: f[3], note: f[5]}
			i.quote = quotes[document+"\t"+i.section+"\t"+i.what]
			if f[4] != "" {
				i.places = strings.Split(f[4], "; ")
			}
			items = append(items, i)
		}
	}
	if len(quotes) != len(items) {
		t.Errorf("testdata/quotes.txt has the words of %d items, want %d", len(quotes), len(items))
	}
	return items
}

// TestDocuments looks for every place that DOCUMENTS.md names.
func TestDocuments(t *testing.T) {
	items := documentItems(t)
	if len(items) != 145 {
		t.Errorf("%d items", len(items))
	}
	shown := readResults(t, resultsText)
	for _, i := range items {
		if !slices.Contains([]string{"table", "figure", "formula", "algorithm", "experiment", "conjecture", "remark", "application"}, i.kind) {
			t.Errorf("%s, %s, %s: a %q", i.document, i.section, i.what, i.kind)
		}
		switch i.state {
		case "built", "reproduced", "holds", "refuted":
			if len(i.places) == 0 {
				t.Errorf("%s, %s, %s: %s, and no place", i.document, i.section, i.what, i.state)
			}
		case "left":
			if len(i.places) > 0 || i.note == "" {
				t.Errorf("%s, %s, %s: left, at %q because %q", i.document, i.section, i.what, i.places, i.note)
			}
		default:
			t.Errorf("%s, %s, %s: %q", i.document, i.section, i.what, i.state)
		}
		if i.quote == "" {
			t.Errorf("%s, %s, %s: no words of the document", i.document, i.section, i.what)
		}
		for _, place := range i.places {
			if !placeIsThere(t, place, shown) {
				t.Errorf("%s, %s, %s: no place %q", i.document, i.section, i.what, place)
			}
		}
	}
	for _, none := range []string{"sim tables: Mitzenmacher, Table VIII", "sim table", "sim figures: Mitzenmacher, Figure 3", "digest/FORMAT.md 99", "digest/NOTHING.md", "digest.Filter.Unite", "digest.Filters"} {
		if placeIsThere(t, none, shown) {
			t.Errorf("%q is a place", none)
		}
	}
}

var sectionNumber = regexp.MustCompile(`^(.*\.md) ([0-9.]+)$`)

// placeIsThere finds "sim NAME", "sim NAME: how a table's title begins", "PAGE.md", "PAGE.md SECTION", "package.Name" or "package.Type.Member".
func placeIsThere(t *testing.T, place string, shown map[string][]shownTable) bool {
	t.Helper()
	if name, found := strings.CutPrefix(place, "sim "); found {
		name, title, _ := strings.Cut(name, ": ")
		for _, c := range chapters {
			if c.experiment == name {
				begins := regexp.MustCompile(`^` + regexp.QuoteMeta(title) + `\b`)
				return slices.ContainsFunc(shown[c.title], func(s shownTable) bool { return title == "" || begins.MatchString(s.title) })
			}
		}
		return false
	}
	page, section := place, ""
	if m := sectionNumber.FindStringSubmatch(place); m != nil {
		page, section = m[1], m[2]
	}
	if strings.HasSuffix(page, ".md") {
		text, err := os.ReadFile(filepath.Join("..", page))
		return err == nil && (section == "" || regexp.MustCompile(`(?m)^#+ `+regexp.QuoteMeta(section)+`\.? `).Match(text))
	}
	dir, name, _ := strings.Cut(place, ".")
	return slices.Contains(namesOf(t, filepath.Join("..", dir)), name)
}

// namesOf returns the exported names of a package's directory, members as Type.Member.
func namesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if pointer, ok := of.(*ast.StarExpr); ok {
						of = pointer.X
					}
					if of, ok := of.(*ast.Ident); ok {
						name = of.Name + "." + name
					}
				}
				names = append(names, name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names = append(names, s.Name.Name)
						if fields, ok := s.Type.(*ast.StructType); ok {
							for _, f := range fields.Fields.List {
								for _, n := range f.Names {
									names = append(names, s.Name.Name+"."+n.Name)
								}
							}
						}
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

var editions = flag.String("papers", "", "directory with the text editions of the documents, to compare DOCUMENTS.md with")

// documentFiles are the text editions, with the pattern at the beginning of a table, figure,
// numbered formula, theorem or section.
var documentFiles = []struct {
	document, file string
	starts         *regexp.Regexp
}{
	{"Mitzenmacher", "mitzenmacher-compressed-bloom-filters.txt", regexp.MustCompile(`^TABLE [IVX]+|^Fig\. \d|\\quad \(\d\)|Theorem \d:|\\tag`)},
	{"Fan", "summary-cache-bloom-filter-math.txt", regexp.MustCompile(`Figure \d`)},
	{"Grothoff", "grothoff-quick-introduction-to-bloom-filters.txt", regexp.MustCompile(`\\quad \(\d\)`)},
	{"Lecture", "lecture-bloom-filters-and-hashing.txt", regexp.MustCompile(`^Lemma \d`)},
	{"Spyropoulos", "spyropoulos-bloom-filters.txt", regexp.MustCompile(`^\d\. [A-Z]`)},
}

// TestDocumentsAgainstPapers finds the words of every item in its document, and an item for
// everything that the document numbers.
func TestDocumentsAgainstPapers(t *testing.T) {
	if *editions == "" {
		t.Skip("no -papers")
	}
	items := documentItems(t)
	plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, d := range documentFiles {
		data, err := os.ReadFile(filepath.Join(*editions, d.file))
		if err != nil {
			t.Fatal(err)
		}
		text := plain(string(data))
		var ours []string
		sections := map[string]bool{}
		for _, i := range items {
			if !strings.HasPrefix(i.document, d.document) {
				continue
			}
			if !strings.Contains(text, plain(i.quote)) {
				t.Errorf("%s, %s, %s: the document does not say %q", i.document, i.section, i.what, i.quote)
			}
			ours = append(ours, i.kind+" "+i.what+" "+i.quote)
			sections[strings.Split(i.section, ".")[0]] = true
		}
		for line := range strings.Lines(string(data)) {
			for _, name := range d.starts.FindAllString(line, -1) {
				name = strings.TrimSuffix(strings.TrimPrefix(name, `\quad `), ":")
				word, number, numbered := strings.Cut(strings.ToLower(name), " ")
				if d.document == "Spyropoulos" {
					if !sections[strings.TrimSuffix(word, ".")] {
						t.Errorf("%s: nothing of section %q", d.document, line)
					}
					continue
				}
				if !slices.ContainsFunc(ours, func(s string) bool {
					s = strings.ToLower(s)
					return strings.Contains(s, strings.ToLower(name)) || numbered && strings.Contains(s, strings.TrimSuffix(word, ".")+"ure "+number+":")
				}) {
					t.Errorf("%s: nothing of %q", d.document, name)
				}
			}
		}
	}
}

// sentenceEnd is the end of a sentence and the first character of the next. Headings, list numbers and
// abbreviations end sentences, too.
var sentenceEnd = regexp.MustCompile(`[.?!:](?:\*\*|\*|")? [A-Z$*#|\[(>0-9\-]`)

// TestDocumentsSentences: each sentence of the documents has the words of an item, or is prose, and
// nothing else is listed as prose.
func TestDocumentsSentences(t *testing.T) {
	if *editions == "" {
		t.Skip("no -papers")
	}
	data, err := os.ReadFile("testdata/prose.txt")
	if err != nil {
		t.Fatal(err)
	}
	prose := map[string]int{} // hashes, and how many sentences have each
	for hash := range strings.FieldsSeq(string(data)) {
		prose[hash] = 0
	}
	items := documentItems(t)
	plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	sentences := 0
	for _, d := range documentFiles {
		data, err := os.ReadFile(filepath.Join(*editions, d.file))
		if err != nil {
			t.Fatal(err)
		}
		text := plain(string(data))
		var quotes [][]int // from and to
		for _, i := range items {
			if at := strings.Index(text, plain(i.quote)); strings.HasPrefix(i.document, d.document) && at >= 0 {
				quotes = append(quotes, []int{at, at + len(plain(i.quote))})
			}
		}
		var ends []int
		for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
			ends = append(ends, end[1]-1)
		}
		from := 0
		for _, to := range append(ends, len(text)) {
			sentence := strings.TrimSpace(text[from:to])
			quoted := slices.ContainsFunc(quotes, func(q []int) bool { return q[0] < to && q[1] > from })
			from = to
			if sentences++; quoted {
				continue
			}
			hash := fmt.Sprintf("%x", sha256.Sum256([]byte(d.document+sentence)))[:8]
			if _, listed := prose[hash]; !listed {
				t.Errorf("%s: neither an item nor prose: %s %s", d.document, hash, sentence)
			}
			prose[hash]++
		}
	}
	for hash, n := range prose {
		if n == 0 {
			t.Errorf("prose that no document has, or that is an item by now: %s", hash)
		}
	}
	if sentences < 750 {
		t.Errorf("%d sentences", sentences)
	}
	t.Logf("%d sentences, %d of them prose", sentences, len(prose))
}
