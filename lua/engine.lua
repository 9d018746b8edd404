-- Runs one operation on one key under a list of policies. lua/README.md is the contract: argument, state, reply.
-- Composed for each list of shapes: a line that begins with --@each is repeated for every policy, with --@ring for
-- those with a ring; with --@rings or --@slots it is there if any policy has them. Words in @{braces} and constants in
-- CAPITALS are filled in.

local op, cost, span, clock, nonce, count, @{numbers}, rest = unpack('<dddddd@{number_formats}', argument)
if not (cost >= 0 and cost <= 2147483648 and cost % 1 == 0) then
  return redis.error_reply('ERR cost must be a whole number from 0 to 2^31')
end
local now = clock
if clock < 0 then
  if not time then
    local parts = call('TIME')
    time = parts[1] * 1000000 + parts[2]
  end
  now = time
end

-- Load. What cannot be read is dropped, or the call would fail for ever.
fixed = @{load}
local exists = #fixed == @{fixed}
local broken = type(fixed) == 'table' or #fixed > 0 and not exists
if not exists then
  fixed = rep('\0', @{fixed})
end
local written, last, held, blocked, epoch, version, expires, @{cells} = unpack('<ddddddd@{cell_formats}', fixed)
if exists then
  latest = max(written, last)
  broken = not (written >= 0 and written <= EXACT and written % 1 == 0 and last >= 0 and last % 1 == 0)
    or not (held >= 0 and held % 1 == 0 and blocked >= 0 and blocked % 1 == 0)
    or not (last <= written + FAR and held <= written + FAR and blocked <= written + FAR)
    or not (epoch >= 0 and epoch <= EXACT and version >= 0 and version <= EXACT and expires >= 0 and expires <= NEVER)
  --@each broken = broken or not ($sane)
  broken = broken or @{has_rings} and call('STRLEN', key) ~= @{length}
end
-- A clock that was set back: time stands still while it is behind by less than a window; by more, begin anew.
if not broken and written > now and written - now < @{longest} then
  now = written
end
if broken or written > now then
  call('DEL', key)
  exists, fixed = false, rep('\0', @{fixed})
  written, last, held, blocked, epoch, version, expires, @{cells} = unpack('<ddddddd@{cell_formats}', fixed)
end
latest = max(written, last)

local open = max(now, held, blocked)
local writes, begun, reset = false, exists, nil
local reply, booking = '', ''
-- Equal calls are made one after the other. A denial changes nothing, so that those after it are the same.
local answers = count > 1 and {}
for call_number = 1, count do
  local at, amount, reason, binding = open, 0, 0, 0
  --@each local earliest_$i, remaining_$i, reset_$i = open, 0, now
  if op == CONSUME or op == PEEK or op == BOOK then
    if cost > 0 then
      local from = max(open, last)
      at = from
      --@each earliest_$i = $f_earliest($state, $numbers, from, cost)
      --@each if earliest_$i > at then at, binding = earliest_$i, $i - 1 end
    end
    if at == HUGE then
      reason = COST
    elseif blocked > now then
      reason = BLOCKED
    elseif at > now + span then
      reason = held > now and HELD or LIMIT
    elseif cost > 0 and op ~= PEEK then
      writes, amount = true, cost
    end
  elseif op == REFUND then
    writes, at, amount = exists, now, -cost
  elseif op == CHARGE then
    writes, at, amount = true, max(now, last), cost
  elseif op == BLOCK then
    writes, blocked = true, now + span
  elseif op == HOLD then
    writes, held = true, max(held, now + span)
  elseif op == RESET then
    call('DEL', key)
    return ''
  else
    local booked_epoch, booked_version = unpack('<dd', argument, rest)
    local stands = exists and epoch == booked_epoch
    if op == CONFIRM then
      return pack('<d', stands and (open > now and HELD or 0) or LIMIT)
    end
    if not stands or version ~= booked_version then
      return pack('<d', 0)
    end
    -- Cancel: put back what the booking replaced, the oldest of a slot last. A ring that grew in it keeps its cap.
    local undo = sub(argument, rest + 16)
    --@ring local kept_$i = cap_$i
    version, last, @{cells} = unpack('<dd@{cell_formats}', undo)
    --@ring cap_$i = kept_$i
    --@slots for i = #undo - 15, 17 + @{cell_bytes}, -16 do write_bytes((unpack('<d', undo, i)), sub(undo, i + 8, i + 15)) end
    writes = true
  end

  if writes then
    if not begun then
      begun, epoch = true, nonce
      --@rings call('SET', key, fixed, 'PX', '60000')
    end
    if amount ~= 0 then
      if op == BOOK and at > now then
        booking = pack('<dd@{cell_formats}', version, last, @{cells})
        replaced = {}
      end
      version = nonce
      --@each $cells = $f_admit($state, $numbers, at, amount)
      if amount > 0 then
        last, latest = at, max(latest, at)
      end
      if replaced then
        booking = pack('<dd', epoch, version) .. booking .. table.concat(replaced)
      end
    end
  end

  -- How the key stands. While it is barred or places ahead are booked nothing is left, and the first moment to tell of
  -- is their end.
  local remaining = HUGE
  reset = open
  if op ~= CANCEL then
    local seen = max(open, last)
    --@each remaining_$i, reset_$i = $f_view($state, $numbers, seen)
    --@each if seen > now then remaining_$i = 0 end
    --@each if remaining_$i < remaining and reason == 0 then binding = $i - 1 end remaining = min(remaining, remaining_$i)
    --@each reset = max(reset, reset_$i)
  end
  local answer = pack('<ddddddd', broken and 1 or 0, now, at, reason, binding, remaining, reset)@{parts}
  if answers then
    answers[call_number] = answer
  else
    reply = answer
  end
  if reason ~= 0 then
    break
  end
end
if answers then
  reply = table.concat(answers)
end

-- The key has to outlive the last moment that matters, also to calls with the slowest limits known. Its time to live
-- is set for a window more than that, and then left alone until less is left than is needed. A denied call that tells
-- of a later moment than any write did, under a limit slower than theirs, makes the key live until then.
if writes or exists then
  local needed = max(reset, last, held, blocked)
  if op ~= CANCEL and #argument >= rest then
    local @{slowest} = unpack('<@{slowest_formats}', argument, rest)
    local _, drained
    --@each _, drained = $f_view($state, $slowest, max(open, last)) needed = max(needed, drained)
  end
  needed = needed + (clock < 0 and 1000000 or 3600000000)
  local ttl
  if needed > expires then
    expires = min(needed + @{longest}, NEVER)
    ttl = string.format('%.0f', ceil((expires - now) / 1000))
  end
  if writes or ttl then
    written = writes and now or written
    local bytes = pack('<ddddddd@{cell_formats}', written, last, held, blocked, epoch, version, expires, @{cells})
    --@slots bytes = bytes .. sub(fixed, #bytes + 1)
    if exists or @{has_rings} then
      call('SETRANGE', key, '0', bytes)
      if ttl then
        call('PEXPIRE', key, ttl)
      end
    else
      call('SET', key, bytes, 'PX', ttl)
    end
  end
end
--@slots if unsound then call('DEL', key) reply = pack('<d', 1) .. sub(reply, 9) end
return reply .. booking
