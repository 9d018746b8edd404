-- Counts a refused call, one denied with the reason LIMIT, and blocks its key from refusal number AFTER on: for `block`
-- microseconds, times `factor` with each further one, at most `maxBlock`. The count and the instant at which it is forgotten lie
-- in 16 bytes behind the state, where scripts without a penalty leave them alone. Part of the engine, whose variables it sets. Under a penalty after
-- which a key begins anew its state is cleared: charges of before give nothing back, and places that were booked are lost.
if reason == LIMIT and op ~= PEEK and op ~= COMMIT then
  if not refusals then
    refusals, forgotten = 0, 0
    if refused ~= '' then
      refusals, forgotten = unpack('<dd', refused)
    end
    if not (refusals >= 1 and refusals <= EXACT and refusals % 1 == 0 and forgotten > now and forgotten <= NEVER) then
      refusals = 0
    end
  end
  refusals, writes = refusals + 1, true
  if refusals >= @{after} then
    local lasts, more = @{block}, refusals - @{after}
    while more > 0 and lasts < @{maxBlock} do
      local longer = min(@{maxBlock}, floor(lasts * @{factor}))
      more = longer > lasts and more - 1 or 0
      lasts = longer
    end
    blocked = max(blocked, now + lasts)
    open = max(open, blocked)
    --@for any fresh @{discard}
    --@for any fresh exists, begun, behind, latest = false, false, '', 0
    --@for any fresh epoch, last, expires, version, @{all_cells} = nonce, 0, 0, nonce, @{zeros}
    --@for any fresh_slots fixed, near_from, near, filled, edit_offset, changed_to = rep('\0', @{fixed}), 0, '', nil, nil, 0
    --@for each fresh_policy earliest_@{i} = min(earliest_@{i}, open)
    at = 0
    --@for each policy if earliest_@{i} > now then earliest_@{i} = max(earliest_@{i}, open) end
    --@for each policy if earliest_@{i} > at then at, binding = earliest_@{i}, @{i} - 1 end
  end
end
