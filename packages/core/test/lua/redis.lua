-- What a script finds in Redis, in plain Lua 5.1: lua5.1 redis.lua < requests > replies
-- A line in, a line out; bytes in hexadecimal. "script TEXT" answers its number; "call NUMBER TIME KEY ARGUMENT ..." answers
-- "+reply ..." with a word for each key, "*reply ..." where there are messages to ask for, or "-error"; "-" stands for an
-- argument that is not there, and "." for an empty one. TIME, in microseconds, is what the script's TIME answers and what keys expire by.

local now = 0
-- Keys: { value, at which instant it expires }
local keys = {}

local commands = {}

-- Commands that fail from now on, by name, and with what.
local refused = {}

function commands.TIME()
  return { string.format('%.0f', math.floor(now / 1000000)), string.format('%.0f', now % 1000000) }
end

function commands.GET(key)
  local found = keys[key]
  if found and type(found.value) == 'table' then
    error({ err = 'WRONGTYPE Operation against a key holding the wrong kind of value' })
  end
  return found and found.value or false
end

function commands.MGET(...)
  local values = {}
  -- Of a key of another type it says that there is none.
  for i, key in ipairs({ ... }) do
    local found = keys[key]
    values[i] = found and found.expires > now and type(found.value) ~= 'table' and found.value or false
  end
  return values
end

function commands.STRLEN(key)
  return #(commands.GET(key) or '')
end

function commands.GETRANGE(key, first, last)
  return string.sub(commands.GET(key) or '', first + 1, tonumber(last) < 0 and last or last + 1)
end

function commands.SET(key, value, option, ms, condition)
  if condition == 'NX' and keys[key] then
    return false
  end
  local expires = option == 'KEEPTTL' and keys[key] and keys[key].expires or math.huge
  if option == 'PX' then
    expires = now + ms * 1000
  end
  keys[key] = { value = value, expires = expires }
  return { ok = 'OK' }
end

function commands.SETRANGE(key, offset, bytes)
  local value = commands.GET(key) or ''
  value = value .. string.rep('\0', offset - #value)
  value = string.sub(value, 1, offset) .. bytes .. string.sub(value, offset + #bytes + 1)
  keys[key] = { value = value, expires = keys[key] and keys[key].expires or math.huge }
  return #value
end

function commands.PEXPIRE(key, ms)
  assert(ms % 1 == 0, 'ERR value is not an integer or out of range')
  if not keys[key] then
    return 0
  end
  keys[key].expires = now + ms * 1000
  return 1
end

function commands.DEL(key)
  local existed = keys[key] and 1 or 0
  keys[key] = nil
  return existed
end

function commands.INFO()
  return '\nmaxmemory:0\r'
end

function commands.EXISTS(key)
  return keys[key] and 1 or 0
end

function commands.PTTL(key)
  if not keys[key] then
    return -2
  end
  return keys[key].expires == math.huge and -1 or math.floor((keys[key].expires - now) / 1000)
end

-- Messages that were published and not asked for yet: channel and text, one after the other.
local published = {}

function commands.PUBLISH(channel, text)
  published[#published + 1] = channel
  published[#published + 1] = text
  return 0
end

-- The members of a hash or a sorted set, by name. A text in its place is of another type; both would be tables.
local function members(key)
  local found = keys[key]
  if found and type(found.value) ~= 'table' then
    error({ err = 'WRONGTYPE Operation against a key holding the wrong kind of value' })
  end
  return found and found.value or {}
end

-- Puts a member in its place, or takes it away. A key without members is gone.
local function put(key, member, value)
  local value_before = members(key)[member]
  if value ~= nil and not keys[key] then
    keys[key] = { value = {}, expires = math.huge }
  end
  if keys[key] then
    keys[key].value[member] = value
    if next(keys[key].value) == nil then
      keys[key] = nil
    end
  end
  return value_before == nil
end

function commands.HSET(key, ...)
  local added, pairs_of = 0, { ... }
  for i = 1, #pairs_of, 2 do
    added = added + (put(key, pairs_of[i], pairs_of[i + 1]) and 1 or 0)
  end
  return added
end

function commands.HMGET(key, ...)
  local values = {}
  for i, field in ipairs({ ... }) do
    values[i] = members(key)[field] or false
  end
  return values
end

function commands.HKEYS(key)
  local fields = {}
  for field in pairs(members(key)) do
    fields[#fields + 1] = field
  end
  table.sort(fields)
  return fields
end

function commands.HGETALL(key)
  local all = {}
  for _, field in ipairs(commands.HKEYS(key)) do
    all[#all + 1] = field
    all[#all + 1] = members(key)[field]
  end
  return all
end

-- All in one page, as Redis returns small hashes. The pattern is a prefix.
function commands.HSCAN(key, _, _, pattern)
  local found, prefix = {}, string.sub(pattern, 1, -2)
  for _, field in ipairs(commands.HKEYS(key)) do
    if string.sub(field, 1, #prefix) == prefix then
      found[#found + 1] = field
      found[#found + 1] = members(key)[field]
    end
  end
  return { '0', found }
end

-- Takes members of a hash or a sorted set away.
function commands.HDEL(key, ...)
  local gone = 0
  for _, member in ipairs({ ... }) do
    gone = gone + (put(key, member, nil) and 0 or 1)
  end
  return gone
end

commands.ZREM = commands.HDEL

function commands.ZADD(key, ...)
  local words, added = { ... }, 0
  local only = words[1] == 'XX'
  for i = only and 2 or 1, #words, 2 do
    if not only or members(key)[words[i + 1]] then
      added = added + (put(key, words[i + 1], tonumber(words[i])) and 1 or 0)
    end
  end
  return added
end

function commands.ZSCORE(key, member)
  local score = members(key)[member]
  return score and string.format('%.17g', score) or false
end

local function bound(text)
  local word = string.match(text, '^%((.*)') or text
  local infinite = { ['+inf'] = math.huge, ['-inf'] = -math.huge }
  return infinite[word] or tonumber(word), word ~= text
end

-- The members between two scores, by score and name.
local function between(key, least, most)
  local from, is_after = bound(least)
  local to, is_before = bound(most)
  local found = {}
  for member, score in pairs(members(key)) do
    if score >= from and score <= to and not (is_after and score == from) and not (is_before and score == to) then
      found[#found + 1] = { member = member, score = score }
    end
  end
  table.sort(found, function(a, b)
    return a.score < b.score or a.score == b.score and a.member < b.member
  end)
  return found
end

function commands.ZCOUNT(key, least, most)
  return #between(key, least, most)
end

function commands.ZREMRANGEBYSCORE(key, least, most)
  local found = between(key, least, most)
  for _, each in ipairs(found) do
    put(key, each.member, nil)
  end
  return #found
end

-- The members of `found` that LIMIT leaves, with their scores where they are asked for.
local function listed(found, ...)
  local words, listing, offset, count, with_scores = { ... }, {}, 0, #found, false
  for i, word in ipairs(words) do
    with_scores = with_scores or word == 'WITHSCORES'
    if word == 'LIMIT' then
      offset, count = tonumber(words[i + 1]), tonumber(words[i + 2])
    end
  end
  for i = offset + 1, math.min(#found, offset + count) do
    listing[#listing + 1] = found[i].member
    if with_scores then
      listing[#listing + 1] = string.format('%.17g', found[i].score)
    end
  end
  return listing
end

function commands.ZRANGEBYSCORE(key, least, most, ...)
  return listed(between(key, least, most), ...)
end

function commands.ZREVRANGEBYSCORE(key, most, least, ...)
  local found, reversed = between(key, least, most), {}
  for i, each in ipairs(found) do
    reversed[#found + 1 - i] = each
  end
  return listed(reversed, ...)
end

redis = {}

local writes = {}
for name in string.gmatch('SET SETRANGE PEXPIRE DEL HSET HDEL ZADD ZREM ZREMRANGEBYSCORE', '%S+') do
  writes[name] = true
end

-- Whether the script has written: the memory is looked at before its first write alone.
local has_written = false

-- Redis hands numbers to commands as texts of up to 17 digits.
function redis.call(name, key, ...)
  local arguments = { ... }
  for i, argument in ipairs(arguments) do
    if type(argument) == 'number' then
      arguments[i] = string.format('%.17g', argument)
    end
  end
  if keys[key] and keys[key].expires <= now then
    keys[key] = nil
  end
  if refused[name] and not (has_written and string.find(refused[name], '^OOM')) then
    error({ err = refused[name] })
  end
  has_written = has_written or writes[name] or false
  return commands[name](key, unpack(arguments))
end

function redis.pcall(...)
  local ran, reply = pcall(redis.call, ...)
  return reply
end

function redis.error_reply(message)
  return { err = message }
end

-- Doubles, least byte first; scripts use no other format.
struct = {}

-- Writes a number as the 8 bytes of a double, as Redis's `struct` does, which plain Lua 5.1 lacks. math.frexp splits the number
-- into a fraction from 0.5 to 1, which begins with a 1 bit that is not stored, and an exponent, which is stored plus 1022.
local function bytes_of(number)
  local sign, fraction, exponent = number < 0 and 128 or 0, math.frexp(math.abs(number))
  if number == 0 then
    return string.rep('\0', 8)
  elseif fraction == math.huge then
    fraction, exponent = 0.5, 1025
  end
  local rest, bytes = (fraction * 2 - 1) * 2 ^ 52, {}
  for i = 1, 6 do
    bytes[i] = rest % 256
    rest = math.floor(rest / 256)
  end
  local biased = exponent + 1022
  return string.char(
    bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], biased % 16 * 16 + rest, sign + math.floor(biased / 16)
  )
end

local function number_of(bytes, from)
  local b1, b2, b3, b4, b5, b6, b7, b8 = string.byte(bytes, from, from + 7)
  local sign, biased = b8 >= 128 and -1 or 1, b8 % 128 * 16 + math.floor(b7 / 16)
  local rest = ((((((b7 % 16) * 256 + b6) * 256 + b5) * 256 + b4) * 256 + b3) * 256 + b2) * 256 + b1
  if biased == 2047 then
    return rest == 0 and sign * math.huge or 0 / 0
  end
  return sign * math.ldexp(biased == 0 and rest or rest + 2 ^ 52, math.max(biased, 1) - 1075)
end

function struct.pack(format, ...)
  local packed = {}
  for i = 1, #format - 1 do
    packed[i] = bytes_of((select(i, ...)))
  end
  return table.concat(packed)
end

function struct.unpack(format, bytes, from)
  from = from or 1
  local numbers = {}
  for i = 1, #format - 1 do
    numbers[i] = number_of(bytes, from)
    from = from + 8
  end
  numbers[#format] = from
  return unpack(numbers, 1, #format)
end

-- Bytes by their two digits, and the other way round.
local byte_of, digits_of = {}, {}
for code = 0, 255 do
  local byte, digits = string.char(code), string.format('%02x', code)
  byte_of[digits], digits_of[byte] = byte, digits
end

local function from_hex(text)
  return (string.gsub(text, '..', byte_of))
end

local function to_hex(bytes)
  return (string.gsub(bytes, '.', digits_of))
end

local scripts = {}
local requests = {}

function requests.script(text)
  scripts[#scripts + 1] = assert(loadstring(from_hex(text)))
  return '+' .. #scripts
end

-- The command fails from now on, or where no error is given, does its work again.
function requests.refuse(command, err)
  refused[command] = err and from_hex(err)
  return '+'
end

-- Answers the messages that were published since it was asked last, as words.
function requests.messages()
  local words = {}
  for i, text in ipairs(published) do
    words[i] = to_hex(text)
  end
  published = {}
  return '+' .. table.concat(words, ' ')
end

local snapshots = {}

local function copy(entries)
  local copied = {}
  for key, entry in pairs(entries) do
    copied[key] = { value = entry.value, expires = entry.expires }
    if type(entry.value) == 'table' then
      copied[key].value = {}
      for member, value in pairs(entry.value) do
        copied[key].value[member] = value
      end
    end
  end
  return copied
end

function requests.snapshot(name)
  snapshots[name] = copy(keys)
  return '+'
end

-- Puts the keys of a snapshot back; where no name is given, none.
function requests.restore(name)
  keys = copy(snapshots[name] or {})
  return '+'
end

function requests.call(number, time, ...)
  now, KEYS, ARGV, has_written = tonumber(time), {}, {}, false
  for i = 1, select('#', ...), 2 do
    local key, argument = select(i, ...)
    KEYS[#KEYS + 1] = from_hex(key)
    if argument ~= '-' then
      ARGV[#ARGV + 1] = argument == '.' and '' or from_hex(argument)
    end
  end
  local ran, reply = pcall(scripts[tonumber(number)])
  if not ran or type(reply) == 'table' and reply.err then
    return '-' .. (type(reply) == 'table' and reply.err or reply)
  end
  local sign = #published > 0 and '*' or '+'
  if type(reply) == 'string' then
    return sign .. to_hex(reply)
  end
  for i, bytes in ipairs(reply) do
    reply[i] = to_hex(bytes)
  end
  return sign .. 'list ' .. table.concat(reply, ' ')
end

for line in io.lines() do
  local words = {}
  for word in string.gmatch(line, '%S+') do
    words[#words + 1] = word
  end
  io.write(requests[words[1]](unpack(words, 2)), '\n')
  io.flush()
end
