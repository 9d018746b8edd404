-- Of a key with open reservations: the units that they hold under each policy, which are those that settling all of them at 0 would
-- give back now; and of a denial the instants at which its cost, and one unit more than remains, pass if they end unsettled, not before
-- the end of a block or hold. Both are found by giving back, after which the state is put back. Part of the engine, whose variables it sets.
if reserved > 0 and op <= COMMIT and (op == PEEK or reason ~= 0) then
  local ones = {}
  do
    local list = call('GETRANGE', key, @{length} - listed, @{length} - 1)
    for place = 1, #list - 47, 48 do
      local charged_at, charged, stay, ends, done = unpack('<ddddd', list, place + 8)
      if done == HUGE then
        ones[#ones + 1] = { charged_at, charged, stay, ends, place }
      end
    end
  end
  table.sort(ones, function(a, b) return a[4] < b[4] or a[4] == b[4] and a[5] < b[5] end)
  local saved = pack('<@{cell_formats}', @{all_cells})
  --@for any bucketed local saved_fixed, saved_edit_offset, saved_edit_bytes, saved_to = fixed, edit_offset, edit_bytes, changed_to
  --@for any ring call = on_copy
  --@for any ring local saved_string = call('GET', key)
  do
    -- A table, as a list of ten calendars leaves Lua no variable for each policy.
    local held_units = { @{zero_units} }
    for _, one in ipairs(ones) do
      if one[1] >= born then
        --@for each policy @{cells}, units = @{algorithm}_release(@{state}, @{numbers}, max(now, last), one[1], one[2], one[2]) held_units[@{i}] = held_units[@{i}] + units
      end
    end
    held_bytes = pack('<d', next_end)
    --@for each policy held_bytes = held_bytes .. pack('<d', ceil(held_units[@{i}]))
  end
  @{put_back}
  if reason ~= 0 then
    local instant, passes_at, left = max(open, last), nil, HUGE
    unit_at = nil
    --@for each policy left = min(left, remaining_@{i})
    for i = 1, #ones + 1 do
      local one = ones[i]
      local ends, fits_at, next_at = one and one[4] or HUGE, instant, instant
      --@for each policy fits_at = max(fits_at, @{algorithm}_earliest(@{state}, @{numbers}, instant, cost))
      --@for each policy next_at = max(next_at, @{algorithm}_earliest(@{state}, @{numbers}, instant, left + 1))
      passes_at = passes_at or fits_at <= ends and fits_at
      unit_at = unit_at or next_at <= ends and next_at
      if passes_at and unit_at then
        break
      end
      instant = max(instant, ends)
      if one[1] >= born and one[2] > one[3] then
        --@for each policy @{cells} = @{algorithm}_release(@{state}, @{numbers}, max(ends, last), one[1], one[2], one[2] - one[3])
      end
    end
    @{put_back}
    at = min(at, passes_at)
    --@for each policy earliest_@{i} = min(earliest_@{i}, at)
  end
end
