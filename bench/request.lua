-- SPDX-License-Identifier: MIT
-- One request again and again in one session, each with an id of its own: the SDK's
-- server mixes up requests that share one.  BENCH_REQUEST is what stands behind the id,
-- BENCH_SESSION the session, "" for a server without.  Ids have one length, so that a
-- request is made of two ready pieces: wrk must not be what is measured.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["MCP-Protocol-Version"] = "2025-11-25"
if os.getenv("BENCH_SESSION") ~= "" then
  wrk.headers["Mcp-Session-Id"] = os.getenv("BENCH_SESSION")
end

local id = 10000000
local head, tail

function init(args)
  local text = wrk.format(nil, nil, nil,
    '{"jsonrpc":"2.0","id":' .. id .. "," .. os.getenv("BENCH_REQUEST"))
  local first, last = text:find(tostring(id), 1, true)
  head, tail = text:sub(1, first - 1), text:sub(last + 1)
end

function request()
  id = id + 1
  return head .. id .. tail
end

-- The 99th percentile, in microseconds; wrk itself prints it rounded.
function done(summary, latency, requests)
  io.write(string.format("BENCH %d %d %d %d\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
