-- The script for calls on several keys: each whole charges all of its keys, or none. The script knows some lists of policies, and
-- each part of a whole names its own by number. lua/README.md has the argument and the reply. Wholes are decided one after the
-- other; those beyond the last argument share it. A plain whole is decided and written before any function is made, as in script.lua.

local keys, call, try = KEYS, redis.call, redis.pcall
local pack, unpack, rep, sub, spread = struct.pack, struct.unpack, string.rep, string.sub, table.unpack or _G.unpack
-- The last argument, its numbers, how many parts a whole has by it, where the first of them begins, and what it says beside them.
local argument, given, count, first, clock, has_slowest
-- The instant of the wholes that are decided now, how much longer their keys must live, and the result of TIME.
local time, margin, redis_time
-- The instant and what plain wholes reply, with -1 for each that has a reply of its own; the replies where there is such a one.
local numbers, taken, replies = { 0, 0, 0, 0, 0 }, 1, nil
local formats = '<@{formats}'
local states = @{states}
-- Keys that were written since all states were read, where a later whole asks for one of them: an empty argument says so.
local stale = states and ARGV[#ARGV] == '' and {}
-- What a plain whole writes for its parts between the first and the last, which are kept in locals as most wholes have two parts.
local between
-- Any operation on a part, any whole, and the parts of a whole by the last argument.
local run, decide, read_parts

local next_key, whole = 0, 0
while next_key < #keys do
  whole = whole + 1
  if (ARGV[whole] or '') ~= '' then
    argument = ARGV[whole]
    given = { unpack(sub(formats, 1, 1 + #argument / 8), argument) }
    count, first, clock, has_slowest = given[1], 2, -1, 0
    if count < 0 then
      count, first, clock, has_slowest = -count, 4, given[2], given[3]
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
  local passed, kept, at = 0, taken, first
  -- What is to be written for the last part that has passed, and for the first: the bytes, and from which byte of the state on.
  local write, write_at, first_write, first_at
  -- Of a part with a ring also the length of the state, a slot, and its bytes.
  --@for any ring local length, slot, slot_bytes, first_length, first_slot, first_bytes
  if has_slowest == 0 and (numbers[1] == 0 or numbers[1] == time) then
    for part = 1, count do
      local key, list = keys[next_key + part], given[at]
      @{plain}
      if passed < part then
        break
      end
      if part == 1 then
        first_write, first_at = write, write_at
        --@for any ring first_length, first_slot, first_bytes = length, slot, slot_bytes
      elseif part < count then
        local i = @{stride} * (part - 2)
        between = between or {}
        between[i + 1], between[i + 2] = write, write_at
        --@for any ring between[i + 3], between[i + 4], between[i + 5] = length, slot, slot_bytes
      end
    end
  end
  local reply, failed, unsound
  if passed == count then
    -- If the server takes the first, it takes them all. Where the length is wrong, the engine drops the state with what was written.
    local size = try('SETRANGE', keys[next_key + 1], first_at, first_write)
    failed = type(size) == 'table'
    if failed then
      reply = size
    else
      --@for any ring if first_slot and (size == first_length or size == first_length + 16) then call('SETRANGE', keys[next_key + 1], first_slot, first_bytes) elseif first_slot then unsound = { 1 } end
      for part = count, 2, -1 do
        if part < count then
          local i = @{stride} * (part - 2)
          write, write_at = between[i + 1], between[i + 2]
          --@for any ring length, slot, slot_bytes = between[i + 3], between[i + 4], between[i + 5]
        end
        size = call('SETRANGE', keys[next_key + part], write_at, write)
        --@for any ring if slot and (size == length or size == length + 16) then call('SETRANGE', keys[next_key + part], slot, slot_bytes) elseif slot then unsound = unsound or {} unsound[#unsound + 1] = part end
      end
      for part = 1, stale and count or 0 do
        stale[keys[next_key + part]] = true
      end
      numbers[1], taken = time, kept
    end
  end

  if passed < count or unsound then
    if not decide then
      -- Per list: its engine, made where a part needs it, how many policies it has, how many numbers the argument of a plain call has,
      -- and whether refusals of its keys are counted.
      local lists, policies, sizes, penalties = {}, { @{policies} }, { @{sizes} }, { @{penalties} }
      local function open(list)
        @{engine}
      end
      -- The parts of a whole by the last argument, and that argument.
      local parts, argument_read
      -- Reads the parts of a whole out of its argument, once for all wholes that share it: the list of each, the bytes of its plain call,
      -- whether its denial denies the whole, and its smallest limits as bytes. The argument has numbers of 8 bytes: for each part its
      -- list and its plain call; behind all of these, unless the whole is plain, for each part whether it is enforced and the limits.
      read_parts = function()
        if argument_read == argument then
          return
        end
        parts, argument_read = {}, argument
        local bytes_read = 8 * (first - 1)
        for i = 1, count do
          local list = given[bytes_read / 8 + 1]
          local call_ends = bytes_read + 8 * (1 + sizes[list])
          parts[i] = { list = list, from = bytes_read + 9, to = call_ends }
          bytes_read = call_ends
        end
        local is_plain = #argument == bytes_read
        for _, part in ipairs(parts) do
          local limits_end = bytes_read + 8 * (1 + policies[part.list])
          part.is_enforced = is_plain or given[bytes_read / 8 + 1] == 1
          part.slowest = has_slowest == 1 and sub(argument, bytes_read + 9, limits_end) or ''
          bytes_read = limits_end
        end
      end

      -- Runs operation `op` of the engine on part number `i`, from 1: a whole's share of one key. `span` is in microseconds, and `rest`
      -- the bytes that only this operation needs; cost and limits are those of the plain call. Returns the engine's reply, packed.
      run = function(i, op, span, rest)
        local part = parts[i]
        local of_part = sub(argument, part.from, part.to) .. pack('<dddd', op, 1, clock, span) .. rest
        if not lists[part.list] then
          open(part.list)
        end
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
        -- Tries or charges part number `i`, keeps its answer, and notes a denial of the whole if the part is one that may deny it. From
        -- flag 2 on an answer is a long one, which has a reason: 0 if the part was not denied.
        local function ask(i, op)
          local part = parts[i]
          answers[i] = run(i, op, 0, part.slowest)
          local flags, _, _, reason = unpack('<dddd', answers[i])
          part.is_long = flags >= 2
          part.is_denied = part.is_long and reason ~= 0
          is_denied = is_denied or (part.is_denied and part.is_enforced)
        end
        for i = 2, count do
          ask(i, TRY)
        end
        for i, part in ipairs(parts) do
          if is_denied then
            if i == 1 then
              ask(i, TRY)
            end
          elseif i == 1 or not part.is_denied then
            local ran, message = pcall(ask, i, COMMIT)
            if not ran then
              for j, token in pairs(undo) do
                local version_before = unpack('<d', token, 25)
                -- A state that began with this whole is deleted, as a server that refuses one command may refuse what cancels.
                if version_before == 0 then
                  try('DEL', keys[next_key + j])
                else
                  pcall(run, j, CANCEL, time, token)
                end
              end
              error(message, 0)
            end
            if not part.is_long then
              -- Flags, now, and two numbers for each policy; behind them is the token.
              local length = 16 * (1 + policies[part.list])
              answers[i], undo[i] = sub(answers[i], 1, length), sub(answers[i], length + 1)
            elseif part.is_denied and penalties[part.list] then
              -- Unlike a commit, this counts the refusal.
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
    read_parts()
    for _, i in ipairs(unsound or {}) do
      run(i, CONSUME, 0, '')
    end
    if passed < count then
      local ran
      ran, reply = pcall(decide)
      failed = not ran
      for part = 1, stale and count or 0 do
        stale[keys[next_key + part]] = true
      end
    end
  end
  if failed then
    @{failure}
  end
  if reply then
    replies, taken = replies or { '' }, taken + 1
    replies[#replies + 1], numbers[taken] = reply, -1
  end
  next_key = next_key + count
end
local packed = pack(taken < #formats and sub(formats, 1, 1 + taken) or '<' .. rep('d', taken), spread(numbers, 1, taken))
-- A list of one string would take Redis longer.
if not replies then
  return packed
end
replies[1] = packed
return replies
