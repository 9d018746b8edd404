-- The engine for one list of policies, in the script for calls on several keys (together.lua). Its function runs one operation on
-- the key `of`. `argument` has the cost, the limits and the operation as packed numbers (argument.lua). Returns the packed reply.
local key, fixed, latest, replaced
--@reserving local copy
@{modules}
@{part_function}
lists[@{number}] = function(of, argument)
  key, replaced = of, nil
  --@reserving call = redis.call
  fixed = @{load}
  --@for any slotted near_from, near, unsound, filled = 0, '', nil, nil
  --@for any bucketed edit_offset, changed_to = nil, 0
  local @{call}
  @{argument}
  @{decision}
end
