"""`framestorm detect`: how long planted bugs take to be found, by framestorm and by what else there is."""
