not coalesce(@suspect, false)
