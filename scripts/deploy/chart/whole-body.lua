-- For haproxy.cfg: a body that came in chunks, and is here as a whole, goes on with its length. The service reads no chunks.
local whole_body = { id = "whole-body", flags = filter.FLT_CFG_FL_HTX }
whole_body.__index = whole_body

function whole_body:new()
  return setmetatable({}, whole_body)
end

function whole_body:http_headers(txn, message)
  local has_no_length = txn.f:method() == "POST" and txn.f:req_fhdr("content-length") == nil
  if has_no_length and not message:is_resp() and message:eom() then
    local bytes = txn.f:req_body_len()
    if message.set_body_len then
      message:set_body_len(bytes)
    else
      -- In HAProxy 2.6 the headers decide.
      txn.http:req_del_header("transfer-encoding")
      txn.http:req_set_header("content-length", tostring(bytes))
    end
  end
  return filter.CONTINUE
end

core.register_filter("whole-body", whole_body, function(class)
  return class
end)
