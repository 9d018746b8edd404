-- The script for calls on several keys whose parts are of the same lists in the same order: each whole charges all of its
-- keys, or none. lua/README.md has the argument and the reply. Wholes are decided one after the other; those beyond the last
-- argument share it. A plain whole is decided and written before any function is made, as in script.lua.

local keys, call, try = KEYS, redis.call, redis.pcall
local pack, unpack, rep, sub, spread = struct.pack, struct.unpack, string.rep, string.sub, table.unpack or _G.unpack
-- The last argument, its numbers of plain calls, and what it says beside them.
local argument, given, clock, has_slowest
-- The instant of the wholes that are decided now, how much longer their keys must live, and the result of TIME.
local time, margin, redis_time
-- The instant and what plain wholes reply, with -1 for each that has a reply of its own; the replies where there is such a one.
local numbers, taken, replies = { 0@{blank} }, 1, nil
local states = @{states}
-- Keys that were written since all states were read, where a later whole asks for one of them: an empty argument says so.
local stale = states and ARGV[#ARGV] == '' and {}
-- Any operation on a part, and any whole.
local run, decide

local next_key, whole = 0, 0
while next_key < #keys do
  whole = whole + 1
  if (ARGV[whole] or '') ~= '' then
    argument = ARGV[whole]
    given = { unpack('<@{plain_formats}', argument) }
    clock, has_slowest = -1, 0
    if #argument > @{plain_bytes} then
      clock, has_slowest = unpack('<dd', argument, @{plain_bytes} + 1)
    end
    time, margin = clock, 3600000000
    if clock < 0 then
      if not redis_time then
        local now = call('TIME')
        redis_time = now[1] * 1000000 + now[2]
      end
      time, margin = redis_time, 1000000
    end
  end

  -- Nothing is written before the last part has passed.
  local passed, kept = 0, taken
  --@for each part local write_@{p}, offset_@{p}
  -- The length of the state, a slot and its bytes.
  --@for each ring local ring_length_@{p}, ring_slot_@{p}, ring_bytes_@{p}
  if has_slowest == 0 and (numbers[1] == 0 or numbers[1] == time) then
    @{plain}
  end
  local reply, failed, unsound
  if passed == @{count} then
    -- If the server takes the first, it takes them all.
    local size_1 = try('SETRANGE', keys[next_key + 1], offset_1, write_1)
    failed = type(size_1) == 'table'
    if failed then
      reply = size_1
    else
      --@for each later local size_@{p} = call('SETRANGE', keys[next_key + @{p}], offset_@{p}, write_@{p})
      -- Where the length is wrong, the engine drops the state with what was written here.
      --@for each ring if size_@{p} == ring_length_@{p} or size_@{p} == ring_length_@{p} + 16 then call('SETRANGE', keys[next_key + @{p}], ring_slot_@{p}, ring_bytes_@{p}) else unsound = unsound or {} unsound[#unsound + 1] = @{p} end
      --@for each part if stale then stale[keys[next_key + @{p}]] = true end
      numbers[1], taken = time, kept
    end
  end

  if passed < @{count} or unsound then
    if not decide then
      local lists = {}
      @{lists}
      local parts = {}
      --@for each part parts[@{p}] = { @{places} }

      -- Runs operation `op` of the engine on part number i, from 1: a whole's share of one key. span is in microseconds, and rest
      -- the bytes that only this operation needs; cost and limits are those of the plain call. Returns the engine's reply, packed.
      run = function(i, op, span, rest)
        local part = parts[i]
        local of_part = sub(argument, part.from, part.to) .. pack('<dddd', op, 1, clock, span) .. rest
        local answer = lists[part.list](keys[next_key + i], of_part)
        if type(answer) == 'table' then
          error(answer.err, 0)
        end
        return answer
      end

      -- Decides any whole, which charges all of its parts or none, and returns the parts' answers, each behind the number of its
      -- bytes. All parts but the first are tried, which charges nothing; then all are charged, the first one first, as nothing has
      -- to be undone where it is denied. A failure undoes what was charged before it.
      decide = function()
        local answers, undo, is_denied = {}, {}, false
        -- Tries or charges part number i, keeps its answer, and notes a denial of the whole if the part is one that may deny it.
        local function ask(i, op)
          local part = parts[i]
          answers[i] = run(i, op, 0, has_slowest == 1 and sub(argument, part.rest + 8, part.last) or '')
          local flags, _, _, reason = unpack('<dddd', answers[i])
          part.is_denied = flags >= 2 and reason ~= 0
          local is_enforced = #argument == @{plain_bytes} or unpack('<d', argument, part.rest) == 1
          is_denied = is_denied or part.is_denied and is_enforced
        end
        for i = 2, @{count} do
          ask(i, TRY)
        end
        for i, part in ipairs(parts) do
          if is_denied then
            if i == 1 then
              ask(i, TRY)
            end
          elseif i == 1 or not part.is_denied then
            local ran, message = pcall(ask, i, RESERVE)
            if not ran then
              for j, token in pairs(undo) do
                -- A state that began with this whole is deleted, as a server that refuses one command may refuse what cancels.
                if unpack('<d', token) == unpack('<d', argument, parts[j].from + 8) then
                  try('DEL', keys[next_key + j])
                else
                  pcall(run, j, CANCEL, time, token)
                end
              end
              error(message, 0)
            end
            if not part.is_denied then
              -- The reply to a call that passes is as long as its plain argument.
              local length = part.to - part.from + 1
              answers[i], undo[i] = sub(answers[i], 1, length), sub(answers[i], length + 1)
            elseif part.counts then
              -- Unlike a reservation, this counts the refusal.
              ask(i, TRY)
            end
          end
        end
        for i, answer in ipairs(answers) do
          answers[i] = pack('<d', #answer) .. answer
        end
        return table.concat(answers)
      end
    end
    for _, i in ipairs(unsound or {}) do
      run(i, CONSUME, 0, '')
    end
    if passed < @{count} then
      local ran
      ran, reply = pcall(decide)
      failed = not ran
      --@for each part if stale then stale[keys[next_key + @{p}]] = true end
    end
  end
  if failed then
    @{failure}
  end
  if reply then
    replies, taken = replies or { '' }, taken + 1
    replies[#replies + 1], numbers[taken] = reply, -1
  end
  next_key = next_key + @{count}
end
local packed = pack('<' .. rep('d', taken), spread(numbers, 1, taken))
-- A list of one string would take Redis longer.
if not replies then
  return packed
end
replies[1] = packed
return replies
