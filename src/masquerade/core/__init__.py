"""What every room uses: errors, settings, seeds, keys, images and archives, atomic files, hashes of files and code,
discovery, and rehearsals. Nothing here is about one method, metric, dataset or step of the pipeline.
"""
