-- Unpacks an argument into the numbers of one call. A plain consume on Redis's clock has only the first of them.

cost, nonce, @{all_numbers}, rest = unpack('<dd@{number_formats}', argument)
op, count, clock, span = CONSUME, 1, -1, 0
if #argument >= rest then
  op, count, clock, span, rest = unpack('<dddd', argument, rest)
end
