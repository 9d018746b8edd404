-- Unpacks an argument into the numbers of one call: its cost in units, a random number for what it writes, each policy's limit and
-- capacity; then operation, number of equal calls, clock (-1: Redis's own) and span, both in microseconds. A plain consume on Redis's
-- clock has only the first of them. rest is the byte, from 1, at which the numbers end.

cost, nonce, @{all_numbers}, rest = unpack('<dd@{number_formats}', argument)
op, count, clock, span = CONSUME, 1, -1, 0
if #argument >= rest then
  op, count, clock, span, rest = unpack('<dddd', argument, rest)
end
