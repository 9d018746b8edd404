-- The records of operators about single keys, in one hash, as texts that every process reads. It is no algorithm and is sent as
-- it is. Fields: 'v' the version of the latest write, 'n' the number of writes, 'x' the last end of a record; 'l' and a number
-- below 1000: version and id of one of the newest writes; 'r' and an id: the record, 'a' and an id: when it last applied, both as they
-- are replied; 'c' and a group, which is the id up to its line break: the number of its records; 'e' and a group: none of it ends before.
-- ARGV[1] is packed: clock (-1: TIME), the version that the caller knows, end of the record or 0, its life, the most of its group
-- (0: read), bytes of the id, the cursor of a page that was read before or 0; then id and text, of a read the ids of records that have
-- applied, with NULs between them. Replies with version, clock, 1 if all records follow, in pages, and the cursor of the next one or 0;
-- then of each version, end, bytes of id and text, these two. With the version -1 the end is when it last applied, and 0 is both of one
-- that was removed. Instants are microseconds. An empty reply: the group is full.

local call, pack, unpack, sub, max = redis.call, struct.pack, struct.unpack, string.sub, math.max
local LOG, PAGE = 1000, 1000

local key = KEYS[1]
local clock, since, ending, life, most, length, cursor, rest = unpack('<ddddddd', ARGV[1])
local now = clock
if clock < 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- A key of another type is taken as an empty one.
local kept = redis.pcall('HMGET', key, 'v', 'n', 'x')
if kept.err and not string.find(kept.err, 'WRONGTYPE', 1, true) then
  return kept
end
if kept.err and most == 0 then
  return pack('<dddd', 0, now, 1, 0)
elseif kept.err then
  -- A server without memory refuses SET, and not DEL.
  call('SET', key, '')
  call('DEL', key)
end
local version, writes, last = tonumber(kept[1]) or 0, tonumber(kept[2]) or 0, tonumber(kept[3]) or 0

local function whole(number)
  return string.format('%.0f', number)
end

-- Returns an entry of the reply.
local function entry(version, ending, id, text)
  return pack('<dddd', version, ending, #id, #text) .. id .. text
end

-- Removes the records of a group that have ended. Returns how many are left, and when the first of them ends.
local function swept(group, size)
  local first, prefix, at = 2 ^ 53, 'r' .. group .. '\n', '0'
  call('HSET', key, 'n', whole(writes))
  repeat
    local page = call('HSCAN', key, at, 'COUNT', PAGE)
    at = page[1]
    for i = 1, #page[2], 2 do
      local field = page[2][i]
      if sub(field, 1, #prefix) == prefix then
        local _, ends = unpack('<dd', page[2][i + 1])
        if ends > now then
          first = math.min(first, ends)
        elseif call('HDEL', key, field, 'a' .. sub(field, 2)) > 0 then
          size = size - 1
        end
      end
    end
  until at == '0'
  call('HSET', key, 'c' .. group, whole(size), 'e' .. group, whole(first))
  return size, first
end

if most > 0 then
  local id, text = sub(ARGV[1], rest, rest + length - 1), sub(ARGV[1], rest + length)
  local group = string.match(id, '^[^\n]*')
  local of = call('HMGET', key, 'r' .. id, 'c' .. group, 'e' .. group)
  local size, first = tonumber(of[2]) or 0, tonumber(of[3]) or 2 ^ 53
  if text ~= '' and not of[1] and size >= most and first <= now then
    size, first = swept(group, size)
  end
  if text ~= '' and not of[1] and size >= most then
    return ''
  end
  if text ~= '' or of[1] then
    version, writes = max(version + 1, now), writes + 1
    call('HSET', key, 'v', whole(version), 'n', whole(writes), 'l' .. writes % LOG, pack('<d', version) .. id)
    call('HDEL', key, 'r' .. id, 'a' .. id)
    size = size - (of[1] and 1 or 0) + (text ~= '' and 1 or 0)
    if text ~= '' then
      ending = ending > 0 and ending or now + life
      last = max(last, ending)
      call('HSET', key, 'r' .. id, entry(version, ending, id, text), 'e' .. group, whole(math.min(first, ending)))
    end
    call('HSET', key, 'x', whole(last), 'c' .. group, whole(size))
    -- An hour longer than its last record, as another clock than TIME may have set the end.
    call('PEXPIRE', key, whole(max(last - now, 0) / 1000 + 3600000))
  end
else
  for id in string.gmatch(sub(ARGV[1], rest), '[^%z]+') do
    if call('HMGET', key, 'r' .. id)[1] then
      redis.pcall('HSET', key, 'a' .. id, entry(-1, now, id, ''))
    end
  end
end

local changed, is_known, back = {}, since == version and cursor == 0, 0
while not is_known and cursor == 0 and back < writes and back < LOG do
  local logged = call('HMGET', key, 'l' .. (writes - back) % LOG)[1]
  if not logged or #logged < 8 then
    break
  end
  is_known = unpack('<d', logged) == since
  back = back + 1
  if not is_known then
    changed[sub(logged, 9)] = true
  end
end
local parts = { pack('<dddd', version, now, 0, 0) }
if is_known then
  for id in pairs(changed) do
    parts[#parts + 1] = call('HMGET', key, 'r' .. id)[1] or entry(0, 0, id, '')
  end
  return table.concat(parts)
end
local page = call('HSCAN', key, whole(cursor), 'COUNT', PAGE)
parts[1] = pack('<dddd', version, now, 1, tonumber(page[1]))
for i = 1, #page[2], 2 do
  local kind = sub(page[2][i], 1, 1)
  if (kind == 'r' or kind == 'a') and #page[2][i + 1] >= 32 then
    parts[#parts + 1] = page[2][i + 1]
  end
end
return table.concat(parts)
