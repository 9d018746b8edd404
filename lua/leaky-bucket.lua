-- The leaky bucket as a meter; twin of algorithms/leaky-bucket.ts. Its level is the debt of gcra.lua over the window.
-- needs: gcra
-- cells: debt, since, fastest
-- holds: since <= latest

local leaky_bucket_earliest, leaky_bucket_admit = gcra_earliest, gcra_admit
local leaky_bucket_view, leaky_bucket_release = gcra_view, gcra_release
