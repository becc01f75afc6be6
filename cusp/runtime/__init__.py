"""The machine below every room: settings, devices, memory, messages, clocks."""
