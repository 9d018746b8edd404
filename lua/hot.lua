-- The plain call: a consume that fits now, on a key whose state is sound and that has no block, hold or future booking. It
-- is decided and written here, before the variables and functions that only other calls need. All other calls go on to
-- the engine, with nothing written that counts. Equal calls are decided here only if all of them fit.
-- Lines that begin with --@alone are for a call that travels alone on Redis's clock, those with --@several for a part of a call
-- on several keys, and those with --@together for all others.
--@alone if #fixed >= @{fixed} and cost > 0 and cost <= 2147483648 and cost % 1 == 0 then
--@several if #fixed >= @{fixed} and cost > 0 and cost <= 2147483648 and cost % 1 == 0 then
--@together if may_be_plain and #fixed >= @{fixed} then
  --@alone local parts = call('TIME')
  --@alone time = parts[1] * 1000000 + parts[2]
  --@alone local now = time
  --@together local now = instant
  local expires, restricted, written, @{all_cells} = unpack('<ddd@{cell_formats}', fixed, @{expires_offset} + 1)
  -- Bytes behind the slots of a key that a block, a hold or a booking has restricted. Behind them may be 16 more, of refusals.
  local header = restricted > 0 and 32 or 0
  latest = max(written, restricted)
  local passes = @{is_sized} and written >= 0 and restricted >= 0 and latest <= now and written % 1 == 0 and expires <= NEVER
  --@for each policy passes = passes and @{sane}
  --@reserving passes = passes and (next_end == 0 or next_end > now)
  -- Of a call that reserves: what its entry in the list of reservations consists of, and where the list ends.
  --@reserving local id, lasts, stays, most, list_end = nil, 0, 0, 0, @{length}
  --@reserving --@alone if #argument > @{plain_bytes} then id, lasts, stays, most = unpack('<dddd', argument, @{plain_bytes} + 33) end
  --@reserving --@together if op == RESERVE then id, lasts, stays, most = unpack('<dddd', argument, rest) end
  --@reserving passes = passes and (not id or header == 0 and reserved < most and listed < 192 * most)
  --@reserving --@for any penalty passes = passes and not id
  local needed = now
  --@together local done, kept = 0, taken
  --@for each policy local remaining_@{i}, reset_@{i}
  --@for each slotted local slot_@{i}, bytes_@{i}
  --@together while passes and done < count do
    --@for each policy if passes then @{take} needed = max(needed, reset_@{i}) end
  --@together   if passes then
  --@together     @{kept_view} = @{view}
  --@together     done, kept = done + 1, kept + @{view_numbers}
  --@together   end
  --@together end
  --@reserving if passes and id then
    --@reserving local ends = now + lasts
    --@reserving if next_end == 0 then listed_since = now end
    --@reserving next_end = next_end > 0 and min(next_end, ends) or ends
    --@reserving needed, listed, reserved = max(needed, ends), listed + 48, reserved + 1
  --@reserving end
  -- A key that was full begins anew with this call.
  local was_full, units = passes, cost
  --@together units = count * cost
  --@for each policy was_full = was_full and remaining_@{i} == capacity_@{i} - units
  --@for each drained if was_full then fastest_@{i} = limit_@{i} end
  --@alone if passes and needed + 1000000 <= expires then
  --@several if passes and needed + margin <= expires then
  --@together if passes and needed + margin <= expires then
    local offset, bytes = '@{written_offset}', pack('<d@{cell_formats}d', now, @{all_cells}, nonce)
    if was_full then
      offset, bytes = '0', pack('<ddd', now, expires, restricted) .. bytes
    end
    --@for any bucketed local from = @{slots}
    --@for each bucketed bytes, from = bytes .. sub(fixed, from + 1, slot_@{i}) .. bytes_@{i}, slot_@{i} + 8
    --@several @{kept_view} = @{view}
    --@several passed, kept, write, write_at = part, kept + @{view_numbers}, bytes, offset
    --@several @{no_ring}
    --@several --@for each ring length, slot, slot_bytes = @{length} + header, slot_@{i}, bytes_@{i}
    -- The reply is the length of the state. Where that is wrong, the engine drops the state with what was written here.
    --@alone local size = call('SETRANGE', key, offset, bytes)
    --@together local size = try('SETRANGE', key, offset, bytes)
    --@alone if @{is_size} then
    --@together if @{is_size} then
      --@reserving if id then call('SETRANGE', key, list_end, pack('<dddddd', id, now, cost, stays, now + lasts, HUGE)) end
      --@alone --@for each ring call('SETRANGE', key, slot_@{i}, bytes_@{i})
      --@together --@for each ring call('SETRANGE', key, slot_@{i}, bytes_@{i})
      --@alone return pack('<dd@{view_formats}', 0, now, @{view})
      --@together plain, shared_now, taken = true, now, kept
    --@alone end
    --@together end
  end
end
