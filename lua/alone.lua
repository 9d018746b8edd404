if #KEYS == 1 then
  key, argument = KEYS[1], ARGV[1]
  fixed = @{load}
  local @{call}
  @{argument}
  @{decision}
end
