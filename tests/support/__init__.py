"""What tests stand on: private servers, a proxy, a pooler, a movable clock, peers. No test lives here."""
