-- The plain call: a consume that fits now, on a key whose state is sound and that has no block, hold or future booking. It
-- is decided and written here, before the variables and functions that only other calls need. All other calls go on to
-- the engine, with nothing written yet. Equal calls are decided here only if all of them fit.
if (#fixed == @{fixed} or #fixed == @{fixed} + 16) and op == CONSUME and #argument < rest and count <= @{together} and cost > 0 and cost <= 2147483648 and cost % 1 == 0 then
  if clock < 0 and not time then
    local parts = call('TIME')
    time = parts[1] * 1000000 + parts[2]
  end
  local now = clock < 0 and time or clock
  local expires, barred, written, @{all_cells} = unpack('<ddd@{cell_formats}', fixed, @{hot_bytes} + 1)
  latest = max(written, barred)
  local passes = written >= 0 and barred >= 0 and latest <= now and written % 1 == 0 and expires <= NEVER
  --@for each policy passes = passes and @{sane}
  --@for any ring local behind = passes and call('STRLEN', key) - (@{length})
  --@for any ring passes = behind == 0 or behind == 16
  local needed, done = now, 0
  local answers = count > 1 and {}
  local answer
  --@for each policy local remaining_@{i}, reset_@{i}
  --@for each slotted local slot_@{i}, bytes_@{i}
  while passes and done < count do
    --@for each policy if passes then @{take} needed = max(needed, reset_@{i}) end
    if passes then
      answer, done = pack('<dd@{view_formats}', 0, now, @{view}), done + 1
      if answers then
        answers[done] = answer
      end
    end
  end
  if passes and needed + (clock < 0 and 1000000 or 3600000000) <= expires then
    local bytes = pack('<d@{cell_formats}d', now, @{all_cells}, nonce)
    --@for any bucketed local from = @{slots}
    --@for each bucketed bytes, from = bytes .. sub(fixed, from + 1, slot_@{i}) .. bytes_@{i}, slot_@{i} + 8
    if type(redis.pcall('SETRANGE', key, '@{hottest}', bytes)) == 'number' then
      --@for each ring call('SETRANGE', key, slot_@{i}, bytes_@{i})
      plain = answers and table.concat(answers) or answer
    end
  end
end
