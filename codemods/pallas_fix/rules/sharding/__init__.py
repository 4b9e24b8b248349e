"""Parts of the rules about shard_map and meshes."""
