-- The leaky bucket as a meter; twin of algorithms/leaky-bucket.ts. Its level is the debt of gcra.lua over the window.
-- needs: gcra
-- cells: debt, since
-- holds: since <= latest

local leaky_bucket_earliest, leaky_bucket_admit, leaky_bucket_view = gcra_earliest, gcra_admit, gcra_view
