t.error @> '{"code": "worker_crashed", "details": {"suspect": 2}}'
