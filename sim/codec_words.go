package main

const codecWords = `
The coders of package arith beside general ones: bytes over the limit log2 C(m,x), and speed beside klauspost's fse on the same
array in the same run. Automatic is what digests use: adaptive where the code is short, block where it is long. Sizes are the
same on every machine; speeds are of the one that ran this, perhaps with other work to do, and their ratios to fse travel
better. Arrays of eight bits a key have nothing to gain. On the others fse is the best of the general coders, 1 to 10 % over
the limit; Rice-coded gaps stay within 4 %. The block coder stays within 0.04 %. The second table is what a reader who holds
the old filter need be sent.
`
