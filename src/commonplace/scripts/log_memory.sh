#!/bin/sh
exec commonplace log "$@"
