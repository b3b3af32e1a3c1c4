package main

import (
	"fmt"
	"html"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// pageHead is the beginning of the page of plan --html. It has no script, and fetches nothing.
const pageHead = `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>What cooperating caches save</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #111; background: #fff }
table { border-collapse: collapse; font-size: 90% }
td, th { text-align: right; padding: .3em .7em; border-bottom: 1px solid #ccc }
td:first-child, th:first-child { text-align: left }
.wide { overflow-x: auto } svg { width: 100%; min-width: 38em; height: auto } svg text { font: 13px sans-serif }
.own { fill: #08306b } .sibling { fill: #4292c6 } .origin { fill: #fee0b6; stroke: #777 }
</style>
<h1>What cooperating caches save</h1>
`

// page returns the result as one HTML page that needs nothing else.
func (r *compared) page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	fmt.Fprintf(&b, "<p>%s</p>\n<p><b>%s</b></p>\n", html.EscapeString(r.Trace+": "+r.Read),
		html.EscapeString(r.answer()))
	r.bars(&b, "How the requests are answered", func(w cost) [3]int64 {
		return [3]int64{int64(w.Own), int64(w.Sibling), int64(w.Origin)}
	}, table.Count[int64])
	r.bars(&b, "Bytes from the origin, and between peers with messages", func(w cost) [3]int64 {
		return [3]int64{0, w.MovedBytes + int64(w.MessageBytes), w.OriginBytes}
	}, table.Bytes[int64])
	b.WriteString("<p>The number behind a bar is the origin's part.</p>\n<div class=\"wide\"><table>\n<tr>")
	for _, h := range comparedHead {
		fmt.Fprintf(&b, "<th>%s", strings.TrimPrefix(h, ">"))
	}
	for _, row := range r.rows() {
		b.WriteString("\n<tr>")
		for _, cell := range row {
			fmt.Fprintf(&b, "<td>%s", html.EscapeString(fmt.Sprint(cell)))
		}
	}
	b.WriteString("\n</table></div>\n<ul>\n")
	for _, n := range r.notes() {
		fmt.Fprintf(&b, "<li>%s\n", html.EscapeString(n))
	}
	b.WriteString("</ul>\n</html>\n")
	return b.String()
}

// parts are those of a bar: the peer that was asked, another one, the origin.
var parts = [3]string{"own", "sibling", "origin"}

// bars draws a bar for each way.
func (r *compared) bars(b *strings.Builder, title string, of func(cost) [3]int64, number func(int64) string) {
	const left, width, height = 220, 560, 26
	most, sums := int64(1), [3]int64{}
	for _, w := range r.Ways {
		p := of(w)
		most = max(most, p[0]+p[1]+p[2])
		for k, n := range p {
			sums[k] += n
		}
	}
	fmt.Fprintf(b, "<h2>%s</h2>\n<div class=\"wide\"><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%[1]s\">\n",
		title, left+width+100,
		(len(r.Ways)+1)*height+10)
	for i, w := range r.Ways {
		y, x := i*height, float64(left)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left-8, y+17,
			html.EscapeString(r.title(i)))
		for k, n := range of(w) {
			part, long := parts[k], float64(n)/float64(most)*width
			fmt.Fprintf(b, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\">", part, x, y+2,
				long, height-6)
			fmt.Fprintf(b, "<title>%s: %s</title></rect>\n", part, number(n))
			x += long
		}
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x+6, y+17, number(of(w)[2]))
	}
	x, y := left, len(r.Ways)*height+8
	for k, part := range parts {
		if sums[k] == 0 {
			continue
		}
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"14\" height=\"14\"/>", part, x, y)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s</text>\n", x+20, y+12, part)
		x += 150
	}
	b.WriteString("</svg></div>\n")
}
