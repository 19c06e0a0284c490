#!/usr/bin/env python3
"""Writes the formula that a proof for VeriPB refutes, independently of the program.
usage: formulas.py first|beautiful|symmetric NORM COLUMN...  (NORM: 0 euclidean, 1 manhattan, 2 chebyshev; no solution: "none N")"""
import sys
kind, norm, columns = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
n = int(columns[1]) if columns[0] == 'none' else len(columns)
S = None if columns[0] == 'none' else [int(c) - 1 for c in columns]
R, C = range(n), []
X = lambda r, c: f'x{r + 1}_{c + 1}'
def add(literals, degree, implied_by=None, relation='>='):
    head = [f'{degree} ~{implied_by}'] if implied_by and degree else []
    C.append(' '.join(head + ['1 ' + l for l in literals] + [f'{relation} {degree}']))
for r in R: add([X(r, c) for c in R], 1, relation='=')
for c in R: add([X(r, c) for r in R], 1, relation='=')
for line in [lambda r, c: c - r + n - 1, lambda r, c: r + c]:
    for d in range(2 * n - 1):
        squares = [X(r, c) for r in R for c in R if line(r, c) == d]
        add(['~' + x for x in squares], len(squares) - 1)
if kind == 'symmetric':
    for r in R:
        for c in R:
            if (c, n - 1 - r) != (r, c): add([X(r, c), '~' + X(c, n - 1 - r)], 1, relation='=')
if S and kind == 'first':
    rows = [r for r in R if S[r] > 0]
    add([f'f{r + 1}' for r in rows], 1)
    for r in rows:
        add([X(i, S[i]) for i in range(r)], r, f'f{r + 1}')
        add([X(r, c) for c in range(S[r])], 1, f'f{r + 1}')
elif S:
    cost = lambda r, c: [(u := abs(2 * r + 1 - n)) * u + (v := abs(2 * c + 1 - n)) * v, u + v, max(u, v)][norm]
    costs = sorted({cost(r, c) for r in R for c in R}, reverse=True)
    level = [[X(r, c) for r in R for c in R if cost(r, c) == k] for k in costs]
    queens = [sum(cost(r, S[r]) == k for r in R) for k in costs]
    has = [v for v in range(len(costs)) if queens[v]]
    add([f'g{v}' for v in has], 1)
    for v in range(has[-1]):
        if v: add([f'~s{v + 1}', f's{v}'], 1)
        add(level[v], queens[v], f's{v + 1}')
        add(['~' + x for x in level[v]], len(level[v]) - queens[v], f's{v + 1}')
    for v in has:
        if v: add([f'~g{v}', f's{v}'], 1)
        add(['~' + x for x in level[v]], len(level[v]) - queens[v] + 1, f'g{v}')
variables = {word.lstrip('~') for c in C for word in c.split() if word[-1].isdigit() and not word.isdigit()}
print(f'* #variable= {len(variables)} #constraint= {len(C)}')
for c in C: print(c, ';')
