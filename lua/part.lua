-- The functions for one list of policies in the script for calls on several keys (together.lua).

lists[@{number}] = {
  -- What the numbers of a plain call are packed as.
  format = '<dd@{number_formats}',
  -- Decides a plain call: puts remaining and resetAt behind kept, and returns the bytes to write, their offset, the length of the state and,
  -- where there is a ring, a slot of it and its bytes. Nothing where the call is not plain.
  plain = @{is_plain} and function(key, fixed, now, cost, nonce, @{all_numbers})
    local latest
    --@for any slotted local rep, sub = string.rep, string.sub
    fixed = fixed or @{load}
    @{hot_several}
  end,
  -- Runs one operation of the engine, and returns its reply.
  run = function(key, argument)
    local fixed, latest, replaced = @{load}
    --@for any slotted local rep, sub = string.rep, string.sub
    @{modules}
    @{part_function}
    local @{call}
    @{argument}
    @{decision}
  end,
}
