# SPDX-License-Identifier: BSD-2-Clause
#
# The look of all pictures: the same thing has the same colour and line in each. To use it:
#
#     load "tools/plot-style.gp"
#     set terminal svg size 900,320 @terminal_look
#     plot "file" with lines @mrd title "mrd", "other" with lines @tcp title "TCP"
#
# `@mrd` stands for a line's width, dashes and colour. `mrd_colour` is the colour alone, for bars and
# points. The colours are those of M. Okabe and K. Ito, Color Universal Design, 2008: the
# colour-blind can tell them apart. Their yellow is too pale on white; two greys are added.

terminal_look = "dynamic noenhanced font 'sans-serif,13' background '#ffffff'"

# Transports. The ceiling is what the device or the kernel does without a reliable transport.
mrd_colour = "#0072b2"
tcp_colour = "#d55e00"
rc_colour = "#009e73"
ceiling_colour = "#666666"
irn_colour = "#cc79a7"
dcqcn_colour = "#e69f00"

mrd = "lw 2 dt solid lc rgb mrd_colour"
tcp = "lw 2 dt solid lc rgb tcp_colour"
rc = "lw 2 dt solid lc rgb rc_colour"
ceiling = "lw 2 dt 2 lc rgb ceiling_colour"
irn = "lw 2 dt solid lc rgb irn_colour"
dcqcn = "lw 2 dt solid lc rgb dcqcn_colour"

# Spray policies of mrd beside the default one, which is drawn as mrd itself.
adaptive_colour = mrd_colour
reps_colour = "#56b4e9"
rr_colour = "#d55e00"
single_colour = "#000000"
random_colour = "#888888"

reps = "lw 2 dt solid lc rgb reps_colour"
rr = "lw 2 dt solid lc rgb rr_colour"
single = "lw 2 dt solid lc rgb single_colour"
random = "lw 2 dt solid lc rgb random_colour"

# An event, such as a path that is cut: a thin line across the picture.
event = "nohead lw 1 lc rgb '#444444'"

set encoding utf8
set border 3 lc rgb "#444444"
set tics nomirror textcolor rgb "#222222"
set grid ytics lc rgb "#dddddd" lt 1 lw 1
set style fill solid 1 noborder
set key outside bottom center horizontal Left reverse samplen 2
