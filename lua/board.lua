-- The texts that processes leave for each other, in one hash. A field is 'instant:author'; the text expires at the instant,
-- in microseconds. It is no algorithm and is sent as it is.
-- ARGV[1] is packed: life of a post in microseconds (0: read), clock (-1: TIME), bytes of the author; then the author and the
-- text. A read replies with each text behind the number of its bytes.

local call, format, match, sub = redis.call, string.format, string.match, string.sub
-- No post lives longer than an hour: one that does was made before the clock was set back.
local FAR = 3600000000

local key = KEYS[1]
local life, clock, length, rest = struct.unpack('<ddd', ARGV[1])
if not (life >= 0 and life <= FAR) then
  return redis.error_reply('ERR life is out of bounds')
end
local now = clock
if clock < 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Reads the name of a field of the hash. An author, which is a process that leaves a text for the others, has one field: its
-- value is the text, and its name is 'instant:author', where the instant, in microseconds, is the end of the text's life. Returns
-- whether the text still lives at now, and the author. No text is posted for longer than FAR, an hour. One that has longer to
-- live was posted before the clock was set back, and counts as expired, as it would otherwise stay too long.
local function parts_of(field)
  local instant, author = match(field, '^(%d+):(.*)$')
  local ending = tonumber(instant or 0)
  return ending > now and ending <= now + FAR, author
end

-- Returns whether a command has failed for another reason than that its key holds another type of value. Such an error goes to
-- the caller, while a key of another type is taken as an empty one.
local function is_refused(reply)
  return reply.err and not string.find(reply.err, 'WRONGTYPE', 1, true)
end

if life == 0 then
  local found = redis.pcall('HGETALL', key)
  if is_refused(found) then
    return found
  end
  local texts = {}
  for i = 1, #found, 2 do
    if parts_of(found[i]) then
      texts[#texts + 1] = struct.pack('<d', #found[i + 1]) .. found[i + 1]
    end
  end
  return table.concat(texts)
end

local author, text = sub(ARGV[1], rest, rest + length - 1), sub(ARGV[1], rest + length)
local name = format('%.0f:', now + life) .. author
local posted = redis.pcall('HSET', key, name, text)
if type(posted) == 'table' then
  if is_refused(posted) then
    return posted
  end
  call('DEL', key)
  call('HSET', key, name, text)
end
for _, field in ipairs(call('HKEYS', key)) do
  local lives, owner = parts_of(field)
  if not lives or owner == author and field ~= name then
    call('HDEL', key, field)
  end
end
-- As long as the longest post; with a clock other than TIME the key is kept as long.
call('PEXPIRE', key, FAR / 1000)
return ''
